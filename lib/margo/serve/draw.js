// The four pictures. All share one time axis: LEFT pixels of labels, then the recording from its start to its end.
const LEFT = 58, RIGHT = 6;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

// The canvas's context, cleared, one unit a CSS pixel; null where it is not shown.
function clean(canvas) {
  const { width, height } = canvas.getBoundingClientRect();
  if (!width || !height) return null;
  const dense = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * dense);
  canvas.height = Math.round(height * dense);
  const context = canvas.getContext("2d");
  context.scale(dense, dense);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  return Object.assign(context, { wide: width, high: height });
}

export const timeAt = (x, width, seconds) =>
  Math.min(seconds, Math.max(0, ((x - LEFT) / (width - LEFT - RIGHT)) * seconds));

const placeOf = (time, context, seconds) => LEFT + (time / seconds) * (context.wide - LEFT - RIGHT);

export function unpack(found) {
  const shades = bytes(found.spectrogram.data), wave = bytes(found.wave.data);
  return { ...found, shades, rows: found.spectrogram.shape[0], columns: found.spectrogram.shape[1],
           outline: new Int16Array(wave.buffer) };
}

// A label that stays within its span, or nothing where it does not fit.
function label(context, text, from, to, y) {
  const wide = context.measureText(text).width;
  if (wide + 4 <= to - from) context.fillText(text, (from + to - wide) / 2, y);
}

function drawWave(canvas, seen) {
  const context = clean(canvas);
  if (!context) return;
  const { outline, seconds } = seen, count = outline.length / 2, middle = 18 + (context.high - 18) / 2;
  const loudest = Math.max(1, outline.reduce((most, value) => Math.max(most, Math.abs(value)), 0));
  const half = (context.high - 20) / 2;
  for (const word of [...seen.words, ...seen.doubted]) {
    const from = placeOf(word.start, context, seconds), to = placeOf(word.start + word.duration, context, seconds);
    context.globalAlpha = seen.words.includes(word) ? 0.04 + 0.16 * word.confidence : 0.03;
    context.fillStyle = colour("accent");
    context.fillRect(from, 0, to - from - 1, context.high);
    context.globalAlpha = 1;
    context.fillStyle = colour(seen.words.includes(word) ? "ink" : "soft");
    label(context, word.word, from, to, 9);
  }
  context.fillStyle = colour("accent");
  const wide = context.wide - LEFT - RIGHT;
  for (let n = 0; n < count; n++) {
    const top = middle - (outline[2 * n + 1] / loudest) * half, bottom = middle - (outline[2 * n] / loudest) * half;
    context.fillRect(LEFT + (n / count) * wide, top, Math.max(1, wide / count), Math.max(1, bottom - top));
  }
  context.fillStyle = colour("soft");
  context.fillText("wave", 0, middle);
}

function drawSpectrogram(canvas, seen) {
  const context = clean(canvas);
  if (!context) return;
  const { shades, rows, columns } = seen;
  const ink = colour("ink"), channels = [1, 3, 5].map((at) => parseInt(ink.slice(at, at + 2), 16));
  const image = new ImageData(columns, rows);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      const shade = shades[row * columns + column] / 255;
      image.data.set([...channels, 255 * shade ** 1.6], 4 * ((rows - 1 - row) * columns + column));
    }
  const picture = document.createElement("canvas");
  picture.width = columns;
  picture.height = rows;
  picture.getContext("2d").putImageData(image, 0, 0);
  context.drawImage(picture, LEFT, 0, context.wide - LEFT - RIGHT, context.high);
  context.fillStyle = colour("soft");
  const top = seen.rate / 2000;
  for (let kilohertz = 0; kilohertz <= top; kilohertz += top > 4 ? 2 : 1)
    context.fillText(`${kilohertz} kHz`, 0, Math.min(context.high - 6, Math.max(6, context.high * (1 - kilohertz / top))));
}

// Rows of the path's picture: the words of both strings in the order in which they are met, each as high as its states.
function rowsOf(seen, states) {
  const met = [];
  for (const [word] of [...seen.path, ...(seen.second ? seen.second.path : [])])
    if (word >= 0 && !met.includes(word)) met.push(word);
  const total = met.reduce((sum, word) => sum + states[word], 0) || 1;
  const rows = new Map();
  let below = 1;
  for (const word of met) {
    const share = states[word] / total;
    below -= share;
    rows.set(word, { below, share });
  }
  return rows;
}

function drawPath(canvas, seen, model, now) {
  const context = clean(canvas);
  if (!context) return;
  const rows = rowsOf(seen, model.states), { seconds, times } = seen, high = context.high - 4;
  const y = ([word, state]) => {
    const { below, share } = rows.get(word);
    return 2 + high * (1 - below - share * ((state + 0.5) / model.states[word]));
  };
  for (const [word, { below, share }] of rows) {
    const top = 2 + high * (1 - below - share), tall = high * share;
    context.strokeStyle = colour("rule");
    context.strokeRect(LEFT, top, context.wide - LEFT - RIGHT, tall);
    context.fillStyle = colour("soft");
    if (tall >= 11) context.fillText(model.words[word].slice(0, 9), 0, top + tall / 2);
  }
  const trace = (path, until, style, dash, width) => {
    context.strokeStyle = style;
    context.lineWidth = width;
    context.setLineDash(dash);
    context.beginPath();
    let before = -1;
    path.forEach((place, frame) => {
      if (place[0] < 0 || times[frame] > until) { before = -1; return; }
      const level = y(place), from = placeOf(times[frame], context, seconds);
      if (before === place[0]) context.lineTo(from, level);
      else context.moveTo(from, level);
      context.lineTo(placeOf(Math.min(times[frame + 1], until), context, seconds), level);
      before = place[0];
    });
    context.stroke();
    context.setLineDash([]);
  };
  if (seen.second) trace(seen.second.path, seconds, colour("second"), [3, 3], 1.2);
  trace(seen.path, seconds, colour("soft"), [], 1.6);
  trace(seen.path, now ?? seconds, colour("accent"), [], 2.5);
  if (now != null) {
    const frame = frameAt(seen, now), place = seen.path[frame];
    if (place && place[0] >= 0) {
      context.fillStyle = colour("live");
      context.beginPath();
      context.arc(placeOf(now, context, seconds), y(place), 5, 0, 7);
      context.fill();
    }
  }
}

function drawMargin(canvas, seen) {
  const context = clean(canvas);
  if (!context) return;
  const { gain, seconds, times } = seen;
  context.fillStyle = colour("soft");
  if (!gain.length) {
    context.fillText("no runner-up", LEFT, context.high / 2);
    return;
  }
  const low = Math.min(0, ...gain), high = Math.max(1, ...gain);
  const y = (value) => 8 + (context.high - 30) * (1 - (value - low) / (high - low));
  context.strokeStyle = colour("rule");
  context.beginPath();
  context.moveTo(LEFT, y(0));
  context.lineTo(context.wide - RIGHT, y(0));
  context.stroke();
  context.strokeStyle = colour("second");
  context.lineWidth = 1.8;
  context.beginPath();
  gain.forEach((value, frame) => context.lineTo(placeOf(times[frame + 1], context, seconds), y(value)));
  context.stroke();
  context.fillText("lead", 0, y(high) + 4);
  context.fillText(`${high.toFixed(0)} nat${high.toFixed(0) === "1" ? "" : "s"}`, 0, y(high) + 18);
  if (y(0) - y(high) > 34) context.fillText("0", 0, y(0));
  const room = (context.wide - LEFT - RIGHT) / 52; // labels that fit
  const step = [0.1, 0.2, 0.5, 1, 2, 5, 10].find((each) => seconds / each <= room) ?? 20;
  for (let time = 0; time <= seconds - step / 3; time += step)
    context.fillText(`${+time.toFixed(1)} s`, placeOf(time, context, seconds), context.high - 6);
}

// Down to what is written below the picture.
function drawCursor(canvas, now, seconds, below) {
  const context = canvas.getContext("2d");
  const { width, height } = canvas.getBoundingClientRect();
  Object.assign(context, { wide: width });
  const x = placeOf(now, context, seconds);
  context.strokeStyle = colour("live");
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x, 0);
  context.lineTo(x, height - below);
  context.stroke();
}

export const frameAt = (seen, time) =>
  Math.max(0, Math.min(seen.times.length - 2, seen.times.findIndex((start) => start > time) - 1 + (time >= seen.times.at(-1) ? seen.times.length : 0)));

// Everything, with the cursor at ``now`` (null: none).
export function draw(seen, model, now) {
  const at = (name) => document.getElementById(name);
  drawWave(at("wave"), seen);
  drawSpectrogram(at("spectrogram"), seen);
  drawPath(at("path"), seen, model, now);
  drawMargin(at("margin"), seen);
  if (now != null)
    for (const [name, below] of [["wave", 0], ["spectrogram", 0], ["margin", 14]])
      drawCursor(at(name), now, seen.seconds, below);
}
