/** Names from the semantic conventions for generative AI and databases where they exist; otherwise custom names. */
export const CONVERSATION = 'gen_ai.conversation.id';
export const AGENT = 'gen_ai.agent.name';
export const OPERATION = 'gen_ai.operation.name';
export const TOOL = 'gen_ai.tool.name';
export const TOOL_CALL = 'gen_ai.tool.call.id';
export const INPUT_TOKENS = 'gen_ai.usage.input_tokens';
export const OUTPUT_TOKENS = 'gen_ai.usage.output_tokens';
export const ERROR_TYPE = 'error.type';
export const STORE_OPERATION = 'db.operation.name';
export const STORE_SYSTEM = 'db.system.name';

export const TURN = 'agent_sessions.turn.id';
export const TURN_STATUS = 'agent_sessions.turn.status';
export const DUPLICATE = 'agent_sessions.turn.duplicate';
export const ATTEMPT_NUMBER = 'agent_sessions.attempt.number';
export const ATTEMPT_OUTCOME = 'agent_sessions.attempt.outcome';
export const ITERATION = 'agent_sessions.iteration';
export const INTENT = 'agent_sessions.intent';
export const STEP = 'agent_sessions.step';
export const SIGNAL = 'agent_sessions.signal';
export const WAIT_OUTCOME = 'agent_sessions.wait.outcome';
export const SWEEP_OUTCOME = 'agent_sessions.sweep.outcome';
export const SWEEP_ACTION = 'agent_sessions.sweep.action';
