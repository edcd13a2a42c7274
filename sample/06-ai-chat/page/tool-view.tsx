import { type DynamicToolUIPart, getToolName, type ToolUIPart } from 'ai';

export interface Approval {
  readonly id: string;
  readonly approved: boolean;
}

type ToolPart = ToolUIPart | DynamicToolUIPart;

const STATES: Record<Exclude<ToolPart['state'], 'approval-responded'>, string> = {
  'input-streaming': 'preparing',
  'input-available': 'running',
  'approval-requested': 'needs your approval',
  'output-available': 'done',
  'output-error': 'failed',
  'output-denied': 'denied',
};

interface Props {
  readonly part: ToolPart;
  readonly onApproval: (approval: Approval) => void;
}

export function ToolView({ part, onApproval }: Props) {
  const name = getToolName(part);
  return (
    <section className="tool" aria-label={`Tool ${name}`}>
      <p className="tool-title">
        <code>{name}</code>
        <span>{describe(part)}</span>
      </p>
      <dl>
        <dt>Input</dt>
        <dd>{JSON.stringify(part.input)}</dd>
        {part.state === 'output-available' && (
          <>
            <dt>Result</dt>
            <dd>{JSON.stringify(part.output)}</dd>
          </>
        )}
        {part.state === 'output-error' && (
          <>
            <dt>Error</dt>
            <dd>{part.errorText}</dd>
          </>
        )}
      </dl>
      {part.state === 'approval-requested' && (
        <div className="decision">
          <button
            type="button"
            className="primary"
            onClick={() => onApproval({ id: part.approval.id, approved: true })}
          >
            Approve
          </button>
          <button type="button" onClick={() => onApproval({ id: part.approval.id, approved: false })}>
            Deny
          </button>
        </div>
      )}
    </section>
  );
}

function describe(part: ToolPart): string {
  if (part.state !== 'approval-responded') return STATES[part.state];
  return part.approval.approved ? 'approved' : 'denied';
}
