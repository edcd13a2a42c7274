const OPEN = ['unsent', 'queued', 'running', 'waiting'];

const NOTES = {
  queued: 'Waits for its turn.',
  waiting: 'Waits for somebody.',
  cancelled: 'Stopped.',
  superseded: 'Replaced by a later message.',
  failed: 'This could not be answered.',
};

/** One message and its answer. Whatever was said is set as text, never as markup. */
export class TurnRow {
  element = document.createElement('div');
  question = this.line('question', 'You');
  answer = this.line('answer', 'Support desk');
  note = this.element.appendChild(document.createElement('p'));
  status = 'unsent';
  /** Behind everything that the server knows, until it knows this. */
  position = Infinity;

  constructor(text) {
    this.element.className = 'turn';
    this.note.className = 'note';
    this.question.textContent = text;
    this.change({});
  }

  get isOpen() {
    return OPEN.includes(this.status);
  }

  /** @param change any of id, position, status, reply, note */
  change({ id = this.id, position = this.position, status = this.status, reply, note = NOTES[status] ?? '' }) {
    // A turn that is over does not open again, whichever news comes late.
    if (!this.isOpen) return;
    Object.assign(this, { id, position, status });
    if (reply) this.answer.textContent = reply;
    this.note.textContent = note;
    this.element.dataset.status = status;
    this.show();
  }

  /** What stands there stays until the new text goes beyond it: an attempt that begins again says the same again. */
  say(text) {
    if (!this.isOpen || this.answer.textContent.startsWith(text)) return;
    this.answer.textContent = text;
    this.change({ status: 'running' });
  }

  show() {
    const isThinking = this.status === 'running' && this.answer.textContent === '';
    this.answer.classList.toggle('thinking', isThinking);
    this.answer.parentElement.hidden = this.answer.textContent === '' && !isThinking;
    this.note.hidden = this.note.textContent === '';
  }

  line(name, who) {
    const line = this.element.appendChild(document.createElement('p'));
    line.className = name;
    const label = line.appendChild(document.createElement('span'));
    label.className = 'unseen';
    label.textContent = `${who}: `;
    return line.appendChild(document.createElement('span'));
  }
}
