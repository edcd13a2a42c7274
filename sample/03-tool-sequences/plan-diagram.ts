import {
  type OrchestrationCondition,
  type OrchestrationStep,
  type SequenceItem,
  type StepPlan,
} from 'nestjs-agent-sessions';

/** Returns a plan as a Mermaid state diagram. Conditions lead to a step from any other step. A sequence leads to `onComplete` when it is finished. */
export function planDiagram({ steps }: Pick<StepPlan, 'steps'>): string {
  const ids = new Map(steps.map(({ name }, at) => [name, `step${at + 1}`]));
  const idOf = (name: string): string => ids.get(name) ?? name;
  const conditional = steps.filter(({ isDefault, conditions }) => !isDefault && conditions);
  return [
    'stateDiagram-v2',
    ...steps.flatMap((step) => linesOf(step).map((line) => `  ${idOf(step.name)} : ${escaped(line)}`)),
    ...(conditional.length > 0 ? ['  any : from any step'] : []),
    ...steps.flatMap(({ name, isDefault }) => (isDefault ? [`  [*] --> ${idOf(name)}`] : [])),
    ...conditional.map(
      ({ name, conditions = [] }) => `  any --> ${idOf(name)} : ${escaped(conditions.map(describe).join(', and '))}`,
    ),
    ...steps.flatMap(({ name, onComplete }) =>
      onComplete === undefined ? [] : [`  ${idOf(name)} --> ${idOf(onComplete)} : sequence finished`],
    ),
    '',
  ].join('\n');
}

/** Escapes characters that would end a label, as Mermaid entities. */
function escaped(label: string): string {
  return label.replace(/[#:;<>]/g, (character) => `#${character.charCodeAt(0)};`);
}

/** Returns the name of a step with its allowed tools. */
function linesOf({ name, availableTools = {}, sequence, resetSequenceOn }: OrchestrationStep): string[] {
  const { allowed, denied } = availableTools;
  return [
    name,
    ...(allowed ? [`only ${allowed.join(', ')}`] : []),
    ...(denied ? [`never ${denied.join(', ')}`] : []),
    ...(sequence ? [`in order - ${sequence.map(describeItem).join(', then ')}`] : []),
    ...(resetSequenceOn ? [`at any time - ${resetSequenceOn.join(', ')}`] : []),
  ];
}

function describeItem(item: SequenceItem): string {
  if (typeof item === 'string') return item;
  return 'anyOf' in item ? item.anyOf.join(' or ') : `perhaps ${item.optional}`;
}

function describe(condition: OrchestrationCondition): string {
  switch (condition.type) {
    case 'tool_used':
      return `${condition.value} was used`;
    case 'sequence_match':
      return 'its sequence was used';
    case 'last_tool':
      return `${condition.value} was used last`;
    case 'tool_count':
      return `${condition.value} was used ${condition.count} times`;
    case 'tool_failed':
      return `${condition.value} failed ${condition.count ?? 1} times`;
    case 'message_matches':
      return `the message matches /${condition.value}/${condition.flags ?? ''}`;
    case 'tokens_over':
      return `more than ${condition.value} tokens`;
    case 'any_of':
      return `(${condition.conditions.map(describe).join(' or ')})`;
    case 'not':
      return `not ${describe(condition.condition)}`;
    case 'predicate':
      return condition.value;
  }
}
