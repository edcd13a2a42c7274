const form = document.getElementById('composer');
const message = document.getElementById('message');
const stop = document.getElementById('stop');
const suggestions = document.getElementById('suggestions');

/** @param onSend is given a text, onStop is called to end the running answer */
export function listen({ onSend, onStop }) {
  const send = (text) => {
    if (text.trim() !== '') onSend(text);
  };

  form.addEventListener('submit', (event) => {
    event.preventDefault();
    send(message.value);
    message.value = '';
    message.focus();
  });

  message.addEventListener('keydown', (event) => {
    // Enter also ends the writing of Chinese or Japanese words.
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  });

  suggestions.addEventListener('click', ({ target }) => {
    if (target instanceof HTMLButtonElement) send(target.textContent);
  });

  stop.addEventListener('click', onStop);
  document.addEventListener('keydown', ({ key, isComposing }) => {
    // Escape also drops such a word.
    if (key === 'Escape' && !isComposing && !stop.hidden) onStop();
  });
}

/** The button that stops an answer is there while there is one. A focus that it had goes where the next message is written. */
export function offerStop(isOffered) {
  if (stop.hidden === !isOffered) return;
  if (document.activeElement === stop) message.focus();
  stop.hidden = !isOffered;
}
