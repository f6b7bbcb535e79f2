// Hands the microphone's samples to the page, 1024 at a time.
class Tap extends AudioWorkletProcessor {
  constructor() {
    super();
    this.block = new Float32Array(1024);
    this.held = 0;
  }
  process(inputs) {
    const channel = inputs[0][0];
    if (channel) {
      for (const sample of channel) {
        this.block[this.held++] = sample;
        if (this.held === this.block.length) {
          this.port.postMessage(this.block.slice());
          this.held = 0;
        }
      }
    }
    return true;
  }
}
registerProcessor("tap", Tap);
