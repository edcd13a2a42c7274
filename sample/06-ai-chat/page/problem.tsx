import { describeError } from './server';

/** Shows an error, with a button that repeats the request. */
export function Problem({ error, onRetry }: { error: Error; onRetry: () => void }) {
  return (
    <p className="problem" role="alert">
      {describeError(error)}
      <button type="button" onClick={onRetry}>
        Try again
      </button>
    </p>
  );
}
