import { type UserRequest } from '../../chat/received-answers.js';
import { type AnyUIMessage } from '../../chat/ui-message.js';
import { approvalSignal, toolOutputSignal } from '../../chat/user-signals.js';

/** An answer of the user to an approval request, or the output of a tool that the client has run. */
export interface UserAnswer extends UserRequest {
  /** Returns the name of the signal. @param earlier the number of earlier requests for the id of the call */
  readonly signal: (earlier: number) => string;
  readonly payload: object;
}

/**
 * Returns the possible answers of the user in a message. Outputs of the server's tools are among them, because they look
 * the same: `UserRequests` tells them apart.
 */
export function answersOf({ parts }: AnyUIMessage): UserAnswer[] {
  return parts.flatMap(({ state, toolCallId, approval, output = null, errorText }): UserAnswer[] => {
    if (typeof toolCallId !== 'string') return [];
    const { approved, reason } = (approval ?? {}) as { approved?: unknown; reason?: unknown };
    if (state === 'approval-responded' && typeof approved === 'boolean') {
      const payload = { approved, ...(typeof reason === 'string' ? { reason } : {}) };
      return [
        {
          toolCallId,
          request: 'tool-approval-request',
          signal: (earlier) => approvalSignal(toolCallId, { earlier }),
          payload,
        },
      ];
    }
    if (state !== 'output-available' && state !== 'output-error') return [];
    const failure = typeof errorText === 'string' ? errorText : 'The tool failed.';
    const payload = state === 'output-error' ? { errorText: failure } : { output };
    return [
      {
        toolCallId,
        request: 'tool-input-available',
        signal: (earlier) => toolOutputSignal(toolCallId, { earlier }),
        payload,
      },
    ];
  });
}
