/**
 * Streams the answer of one turn. When the connection breaks, the EventSource reconnects automatically and resumes after the last event
 * that it received.
 */
export class AnswerStream {
  constructor(turnId, { onText, onContinued, onEnd }) {
    this.turnId = turnId;
    this.source = new EventSource(`turns/${turnId}/events`);
    let text = '';
    this.on('delta', (delta) => onText((text += delta.text)));
    // A new attempt emits the answer from the start.
    this.on('attempt', () => {
      text = '';
      onContinued();
    });
    this.on('settled', (end) => {
      this.close();
      onEnd(end);
    });
  }

  /** Works also after the EventSource has given up. */
  get isClosed() {
    return this.source.readyState === EventSource.CLOSED;
  }

  close() {
    this.source.close();
  }

  on(type, listener) {
    this.source.addEventListener(type, ({ data }) => listener(JSON.parse(data)));
  }
}
