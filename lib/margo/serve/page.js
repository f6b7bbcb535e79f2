import { draw, frameAt, timeAt, unpack } from "./draw.js";

const at = (id) => document.getElementById(id);
const EVERY = 350; // ms between looks at what is being said
let model = null, seen = null, now = null, recording = null, player = null, newest = 0, shown = 0;

const say = (text) => { at("state").textContent = text; };
const fail = (text) => { at("error").textContent = text; at("error").hidden = !text; };

async function start() {
  try {
    model = await (await fetch("model")).json();
  } catch (error) {
    fail(`The server does not answer: ${error.message}`);
    return;
  }
  at("name").textContent = model.name;
  const many = model.words.length, listed = model.words.slice(0, 24).join(" ");
  at("about").textContent = `${many} words (${listed}${many > 24 ? " …" : ""}), ${model.gaussians} Gaussians`
    + (model.criterion ? `, trained by ${model.criterion.toUpperCase()}` : "");
  const able = window.isSecureContext && navigator.mediaDevices;
  at("speak").disabled = !able;
  at("open").disabled = false;
  if (!able) say("Browsers give the microphone to https pages and to this very computer only. Drop an audio file instead.");
}

// Samples [-1, 1] as a 16-bit WAV file.
function wav(blocks, rate) {
  const count = blocks.reduce((sum, block) => sum + block.length, 0);
  const view = new DataView(new ArrayBuffer(44 + 2 * count));
  const text = (place, letters) => [...letters].forEach((letter, n) => view.setUint8(place + n, letter.charCodeAt(0)));
  text(0, "RIFF"); view.setUint32(4, 36 + 2 * count, true); text(8, "WAVEfmt "); view.setUint32(16, 16, true);
  view.setUint16(20, 1, true); view.setUint16(22, 1, true); view.setUint32(24, rate, true);
  view.setUint32(28, 2 * rate, true); view.setUint16(32, 2, true); view.setUint16(34, 16, true);
  text(36, "data"); view.setUint32(40, 2 * count, true);
  let place = 44;
  for (const block of blocks)
    for (const sample of block) {
      view.setInt16(place, Math.round(32767 * Math.max(-1, Math.min(1, sample))), true);
      place += 2;
    }
  return new Blob([view.buffer], { type: "audio/wav" });
}

// Ask what is heard in a file; answers that come after newer ones are let go.
async function recognise(blob, partial) {
  const number = ++newest;
  let answer;
  try {
    const response = await fetch("recognise", { method: "POST", body: blob });
    answer = await response.json();
  } catch (error) {
    if (!partial) fail(`The server does not answer: ${error.message}`);
    return false;
  }
  if (number < shown) return true;
  if (answer.error) {
    if (!partial) { fail(answer.error); say("Nothing was recognised."); }
    return false;
  }
  shown = number;
  fail("");
  show(unpack(answer), partial);
  return true;
}

function element(tag, text, kind = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  made.className = kind;
  return made;
}

function show(found, partial) {
  seen = found;
  if (partial) now = null;
  at("result").hidden = false;
  const all = [...seen.words, ...seen.doubted].sort((one, other) => one.start - other.start);
  at("words").classList.toggle("old", partial);
  at("words").replaceChildren(...all.map((word) => {
    const doubted = seen.doubted.includes(word), made = element("span", "", doubted ? "word doubted" : "word");
    const bar = element("b", ""), part = element("i", ""), percent = Math.round(100 * word.confidence);
    part.style.width = `${percent}%`;
    bar.append(part);
    made.append(element("span", word.word), bar, element("small", doubted ? `noise? ${percent} %` : `${percent} %`));
    return made;
  }));
  if (!all.length) at("words").append(element("span", partial ? "listening…" : "No words: silence or noise.", "nothing"));
  runnerUp();
  at("table").replaceChildren(...seen.words.map((word) => {
    const row = element("tr", "");
    row.append(element("td", word.word), ...[word.start.toFixed(2), word.duration.toFixed(2), word.confidence.toFixed(3)]
      .map((value) => element("td", value, "n")));
    return row;
  }));
  paint();
}

function runnerUp() {
  const line = at("second");
  if (!seen.second) { line.textContent = seen.path.length ? "There is no runner-up." : ""; return; }
  const { text, margin } = seen.second;
  line.replaceChildren("Runner-up: ", element("strong", text), ", ", element("em", `${margin.toFixed(1)} nats`),
    ` behind (${(margin / seen.path.length).toFixed(3)} a frame).`);
}

function paint() {
  if (!seen) return;
  draw(seen, model, now);
  const words = [...seen.words, ...seen.doubted].sort((one, other) => one.start - other.start);
  [...at("words").children].forEach((shown, n) => shown.classList.toggle("here", now != null && words[n]
    && words[n].start <= now && now < words[n].start + words[n].duration));
  if (now == null) return;
  const frame = frameAt(seen, now), [word, state] = seen.path[frame] ?? [-1, -1];
  const where = word < 0 ? "silence" : `${model.words[word]}, state ${state + 1} of ${model.states[word]}`;
  const lead = seen.gain.length ? `, lead ${seen.gain[frame].toFixed(1)} nats` : "";
  at("readout").textContent = `${now.toFixed(2)} s: ${where}${lead}`;
}

async function listen() {
  stopPlaying();
  fail("");
  let stream;
  try {
    stream = await navigator.mediaDevices.getUserMedia({ audio: {
      channelCount: 1, echoCancellation: false, noiseSuppression: false, autoGainControl: false } });
  } catch (error) {
    fail(`No microphone: ${error.message}`);
    return;
  }
  let context, source;
  try { // at the model's own rate, where the browser can
    context = new AudioContext(model.rate ? { sampleRate: model.rate } : {});
    source = context.createMediaStreamSource(stream);
  } catch {
    context = new AudioContext();
    source = context.createMediaStreamSource(stream);
  }
  await context.audioWorklet.addModule("tap.js");
  const tap = new AudioWorkletNode(context, "tap");
  recording = { context, stream, blocks: [], count: 0, busy: false, timer: 0 };
  tap.port.onmessage = ({ data }) => heard(data);
  source.connect(tap);
  recording.timer = setInterval(peek, EVERY);
  at("speak").classList.add("on");
  at("speak").querySelector("span").textContent = "Stop";
  at("play").disabled = true;
  at("level").hidden = false;
  say("Listening…");
}

function heard(block) {
  if (!recording) return;
  recording.blocks.push(block);
  recording.count += block.length;
  at("level").value = Math.min(1, 1.2 * block.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0));
  const seconds = recording.count / recording.context.sampleRate;
  say(`Listening… ${seconds.toFixed(1)} s of ${model.seconds}`);
  if (seconds > model.seconds - 0.5) finish();
}

async function peek() {
  if (!recording || recording.busy || recording.count < 0.3 * recording.context.sampleRate) return;
  const mine = recording;
  mine.busy = true;
  await recognise(wav(mine.blocks, mine.context.sampleRate), true);
  mine.busy = false;
}

async function finish() {
  const { context, stream, blocks, timer } = recording, rate = context.sampleRate;
  recording = null;
  clearInterval(timer);
  stream.getTracks().forEach((track) => track.stop());
  await context.close();
  at("level").value = 0;
  at("level").hidden = true;
  at("speak").classList.remove("on");
  at("speak").querySelector("span").textContent = "Speak";
  await take(wav(blocks, rate), "your recording");
}

async function take(blob, name) {
  stopPlaying();
  fail("");
  now = null;
  say(`Recognising ${name}…`);
  if (!(await recognise(blob, false))) return;
  if (player) URL.revokeObjectURL(player.src);
  player = new Audio(URL.createObjectURL(blob));
  player.addEventListener("ended", stopPlaying);
  player.addEventListener("error", () => {
    at("play").disabled = true;
    at("play").title = "the browser cannot play this kind of file";
  });
  at("play").disabled = false;
  at("play").title = "";
  say(`${name}, ${seen.seconds.toFixed(2)} s`);
}

function follow() {
  if (!player || player.paused) return;
  now = Math.min(player.currentTime, seen.seconds);
  paint();
  requestAnimationFrame(follow);
}

function stopPlaying() {
  if (player) player.pause();
  at("play").querySelector("span").textContent = "Play";
}

async function togglePlaying() {
  if (!player || at("play").disabled) return;
  if (!player.paused) { stopPlaying(); return; }
  if (player.ended || now == null || now > seen.seconds - 0.05) now = 0;
  player.currentTime = now;
  at("play").querySelector("span").textContent = "Pause";
  await player.play().then(follow, stopPlaying);
}

function moveTo(time) {
  now = Math.max(0, Math.min(seen.seconds, time));
  if (player) player.currentTime = now;
  paint();
}

const toggleSpeaking = () => (recording ? finish() : listen());
at("speak").addEventListener("click", toggleSpeaking);
at("open").addEventListener("click", () => at("file").click());
at("play").addEventListener("click", togglePlaying);
at("file").addEventListener("change", () => {
  const [file] = at("file").files;
  at("file").value = "";
  if (file) take(file, file.name);
});
const point = (event) => {
  if (!seen || recording) return;
  const { left, width } = at("wave").getBoundingClientRect();
  moveTo(timeAt(event.clientX - left, width, seen.seconds));
};
at("pictures").addEventListener("pointermove", (event) => { if (!player || player.paused) point(event); });
at("pictures").addEventListener("pointerdown", point);
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat && event.key === " ") return;
  const onButton = event.target.closest?.("button, summary, input");
  if (event.key === " " && !onButton && !at("speak").disabled) { event.preventDefault(); toggleSpeaking(); }
  else if (event.key === "o" && !recording) at("open").click();
  else if (event.key === "p" && !recording) togglePlaying();
  else if ((event.key === "ArrowLeft" || event.key === "ArrowRight") && seen && !recording && !onButton) {
    event.preventDefault();
    const step = (seen.times[2] - seen.times[1] || 0.01) * (event.shiftKey ? 10 : 1);
    moveTo((now ?? 0) + (event.key === "ArrowRight" ? step : -step));
  }
});
let over = 0;
document.addEventListener("dragenter", (event) => { event.preventDefault(); over++; at("drop").hidden = false; });
document.addEventListener("dragleave", () => { over = Math.max(0, over - 1); at("drop").hidden = over === 0; });
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => {
  event.preventDefault();
  over = 0;
  at("drop").hidden = true;
  const [file] = event.dataTransfer.files;
  if (file && !recording) take(file, file.name);
});
new ResizeObserver(paint).observe(at("pictures"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
start();
