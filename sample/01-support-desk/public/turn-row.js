const OPEN = ['unsent', 'queued', 'running', 'waiting'];

const NOTES = {
  queued: 'Waits for its turn.',
  waiting: 'Waits for somebody.',
  cancelled: 'Stopped.',
  superseded: 'Replaced by a later message.',
  failed: 'This could not be answered.',
};

/** One message and its answer. Content is never inserted as markup. */
export class TurnRow {
  element = document.createElement('div');
  question = this.line('question', 'You');
  answer = this.line('answer', 'Support desk');
  note = this.element.appendChild(document.createElement('p'));
  status = 'unsent';
  /** The position before the server knows the message: after all others. */
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
    // Late data does not reopen a turn that is over.
    if (!this.isOpen) return;
    Object.assign(this, { id, position, status });
    if (reply) this.answer.textContent = reply;
    this.note.textContent = note;
    this.element.dataset.status = status;
    this.show();
  }

  /** Keeps the shown text until the new text is longer, because a new attempt repeats the start of the answer. */
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
