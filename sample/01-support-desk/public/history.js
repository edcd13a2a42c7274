import { conversations } from './session.js';

const history = document.getElementById('history');
const list = document.getElementById('conversations');
const more = document.getElementById('more');
const problem = document.getElementById('history-problem');
let cursor;

/**
 * Lists the user's conversations when the list is opened. Conversations without a message are left out.
 * @param onOpen receives the id of the chosen conversation; unsentIn returns a message of a conversation that the server does not have
 */
export function listConversations({ onOpen, unsentIn }) {
  const load = async () => {
    try {
      const page = await conversations(cursor);
      if (cursor === undefined) list.replaceChildren();
      const titled = page.conversations.map((each) => ({
        ...each,
        title: each.title ?? unsentIn(each.id)?.slice(0, 60),
      }));
      list.append(...titled.filter(({ title }) => title !== undefined).map(toItem));
      cursor = page.nextCursor;
      more.hidden = cursor === undefined;
      problem.textContent = list.children.length === 0 ? 'None yet.' : '';
    } catch {
      problem.textContent = 'The list cannot be loaded now. Open it again later.';
    }
  };

  history.addEventListener('toggle', () => {
    if (!history.open) return;
    cursor = undefined;
    void load();
  });
  more.addEventListener('click', load);
  list.addEventListener('click', ({ target }) => {
    const id = target.closest('button')?.dataset.id;
    if (id === undefined) return;
    history.open = false;
    onOpen(id);
  });
}

function toItem({ id, title, lastActivityAt }) {
  const item = document.createElement('li');
  const button = item.appendChild(document.createElement('button'));
  button.type = 'button';
  button.dataset.id = id;
  button.append(title, document.createElement('time'));
  button.lastChild.dateTime = lastActivityAt;
  button.lastChild.textContent = new Date(lastActivityAt).toLocaleString();
  return item;
}
