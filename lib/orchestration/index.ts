export { type AgentRef } from './agent-ref.js';
export { type AIOrchestrationState } from './ai-orchestration-state.js';
export { defineStepPlan, type StepPlanConfig } from './define-step-plan.js';
export * from './orchestration-config.js';
export { type OrchestrationEffect } from './orchestration-entry.js';
export { type OrchestrationEvent, OrchestrationEvents, type OrchestrationEventType } from './orchestration-events.js';
export { OrchestrationStateManager } from './orchestration-state-manager.service.js';
export {
  type OrchestrationProgress,
  type SequenceMove,
  type ToolOutcome,
  type ToolUse,
} from './orchestration-state.js';
export * from './orchestration.errors.js';
export {
  OrchestrationUpdates,
  ToolAdmissionOptions,
  ToolUsageOptions,
  ToolUseOptions,
} from './orchestration.inputs.js';
export { OrchestrationOptions } from './orchestration.options.js';
export { OrchestrationService } from './orchestration.service.js';
export { type AdmittedTool } from './admitted-tool.js';
export { type StepPlan } from './step-plan.js';
export { StepPredicate, type StepPredicateContext, type StepPredicateHandler } from './step-predicates.js';
export { type SequencedStep, StepSequencer } from './step-sequencer.service.js';
export { type KeyValueClient, type StorageProvider } from './storage-provider.js';
