const OPEN = ['unsent', 'queued', 'running', 'waiting'];

const NOTES = {
  queued: 'Waits for the answer before it.',
  waiting: 'Waits for a decision.',
  cancelled: 'Stopped.',
  superseded: 'Replaced by a later message.',
  failed: 'This could not be answered.',
};
const CONTINUED = 'Continued after an interruption.';

/** One message and its answer. Content is never inserted as markup. */
export class TurnRow {
  element = document.createElement('div');
  question = this.line('question', 'You');
  answer = this.line('answer', 'Support desk');
  note = this.element.appendChild(document.createElement('p'));
  status = 'unsent';
  /** True if the server stopped during the answer. */
  isContinued = false;
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

  /** @param change any of id, position, status, reply, isContinued, note */
  change({
    id = this.id,
    position = this.position,
    status = this.status,
    isContinued = this.isContinued,
    reply,
    note,
  }) {
    // Late data does not reopen a turn that is over.
    if (!this.isOpen) return;
    Object.assign(this, { id, position, status, isContinued });
    if (reply) this.answer.textContent = reply;
    this.note.textContent = note ?? NOTES[status] ?? (isContinued ? CONTINUED : '');
    this.element.dataset.status = status;
    this.show();
  }

  /** Keeps the shown text until the new text is longer, because a new attempt repeats the start of the answer. */
  say(text) {
    if (!this.isOpen || this.answer.textContent.startsWith(text)) return;
    this.answer.textContent = text;
    this.change({ status: 'running' });
  }

  /** Shows that the message was not sent, with a button for each action. */
  refuse(why, actions, key) {
    const buttons = this.element.appendChild(document.createElement('div'));
    buttons.className = 'actions';
    for (const [label, act] of Object.entries(actions)) {
      const button = buttons.appendChild(document.createElement('button'));
      button.type = 'button';
      button.textContent = label;
      button.addEventListener('click', () => act(key));
    }
    this.change({ status: 'refused', note: `Not sent: ${why}` });
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
