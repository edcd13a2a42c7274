/**
 * The answer of one turn as it comes. When the connection breaks, the EventSource connects again by itself and goes on after
 * the last event that it had.
 */
export class AnswerStream {
  constructor(turnId, { onText, onEnd }) {
    this.turnId = turnId;
    this.source = new EventSource(`turns/${turnId}/events`);
    let text = '';
    this.on('delta', (delta) => onText((text += delta.text)));
    // The handler begins again, and says again what it said.
    this.on('attempt', () => (text = ''));
    this.on('settled', (end) => {
      this.close();
      onEnd(end);
    });
  }

  /** Also when the EventSource has given up. */
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
