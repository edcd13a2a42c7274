import { readdirSync, readFileSync } from 'node:fs';
import ts from 'typescript';

/**
 * The kinds of messages. A rule follows the path of a value, so it starts with a small letter. Rules and messages about the
 * configuration must say what was expected.
 */
type Kind = 'error' | 'configuration' | 'rule' | 'log' | 'description';

interface Message {
  readonly at: string;
  readonly kind: Kind;
  /** Placeholders are `{}`. */
  readonly text: string;
}

const FILES = readdirSync('lib', { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !file.startsWith('testing'))
  .map((file) => `lib/${file}`);
const LEVELS = ['error', 'warn', 'log', 'debug', 'verbose', 'fatal'];
/** Functions of lib that build an error, or check a condition and throw one, with the rule that was broken. */
const CHECKS = /^(?:check|fail|refuse|Must|MustHave|reject|wrongPrincipal)$/;
/** Errors that are given a part of their message, which their constructor completes. */
const PARTS = /^(?:SessionState|TooLarge|StateSerialization|UnreadableRecord)Error$/;
/** The message that Nest gives every internal error. */
const OF_NEST = 'Internal server error';
/** Functions that build an OpenAPI schema or the options of an instrument; their last string is a description. */
const DESCRIBES = /^(?:text|time|count|flag|listOf|anything|one)$/;

/** Phrases of the table of terms in the writing guide that a message must not have. */
const PHRASES = [
  /\b(?:a|the) texts?\b(?! of)/i,
  /\b(?:nobody|somebody|whoever)\b/i,
  /\b(?:is|are) told\b|\btells? (?:of|who|whom)\b|\bhears? of\b/i,
  /\btr(?:y|ies|ied|ying) (?:again|on|anew)\b|\banew\b/i,
  /\bgo(?:es)? on\b/i,
  /\bbecomes? of\b/i,
  /\bstands? in\b|\bis kept in\b/i,
  /\bfor good\b/i,
  /\blooked at\b/i,
  /\bof (?:yours|your own|its own|their own)\b/i,
  /\b(?:is|are) no(?:ne)?\b(?! (?:longer|more|orchestrator named))/i,
  /\bcomes? (?:about|by (?:itself|themselves))\b/i,
  /\bdoorbells?\b|\brings? (?:a|the) bell\b/i,
  /\bcanceled\b/i,
];
/** What was expected, or an imperative that says what to do. */
const EXPECTATION =
  /\{\} Received:|\b(?:at most|either|allowed|Register|Select|Stop|Shorten|must|requires?|needs?|Expected|Allowed|Missing|Add|Use|Set|Run|Import|Install|Increase|Remove|Pass|Check|Detach|Choose|Deploy|Grant|Implement|Open|Repair|Allow|Make|Repeat|Decorate|Send)\b/;

const messages = FILES.flatMap(messagesOf);

describe('messages of the package', () => {
  it('DOC finds messages of every kind', () => {
    const kinds = new Set(messages.map(({ kind }) => kind));
    expect([...kinds].sort()).toEqual(['configuration', 'description', 'error', 'log', 'rule']);
    expect(messages.length).toBeGreaterThan(300);
  });

  it('NST-03 follows the message rules of the writing guide', () => {
    expect(messages.flatMap(problemsOf)).toEqual([]);
  });

  it.each<[string, Kind, string, string]>([
    ['a small first letter', 'error', 'the store is closed.', 'capital'],
    ['no full stop', 'log', 'The store is closed', 'full stop'],
    ['a sentence of 31 words', 'log', `${'Word '.repeat(31).trim()}.`, '30 words'],
    ['a phrase of the table', 'description', 'Nobody is signed in.', 'Nobody'],
    ['no expectation', 'rule', 'is wrong.', 'expected'],
  ])('DOC detects %s', (_, kind, text, problem) => {
    expect(problemsOf({ at: 'here', kind, text }).join()).toContain(problem);
  });
});

function problemsOf({ at, kind, text }: Message): string[] {
  const problems = [
    ...(kind === 'rule' || /^(?:[A-Z`{]|\w+: )/.test(text)
      ? []
      : ['does not start with a capital, a backtick or a placeholder']),
    ...(/(?:[.?]|\{\})$/.test(text) ? [] : ['does not end with a full stop']),
    ...text
      .split(/(?<=[.?!]) /)
      .filter((sentence) => sentence.split(/\s+/).filter((word) => /[a-z]/i.test(word)).length > 30)
      .map(() => 'has a sentence over 30 words'),
    ...PHRASES.flatMap((phrase) => phrase.exec(text)?.[0] ?? []).map((found) => `contains "${found}"`),
    ...((kind !== 'rule' && kind !== 'configuration') || /\{\}$/.test(text) || EXPECTATION.test(text)
      ? []
      : ['does not say what was expected']),
  ];
  return problems.map((problem) => `${at}: ${problem}: ${text}`);
}

function messagesOf(file: string): Message[] {
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true);
  const found: Message[] = [];
  const isOfMessages = file.endsWith('.messages.ts');
  const add = (kind: Kind, node: ts.Expression | undefined): void => {
    for (const { text, start } of node ? textsOf(node) : []) {
      if ((!/\s/.test(text) && kind !== 'log') || text === OF_NEST) continue;
      found.push({ at: `${file}:${source.getLineAndCharacterOfPosition(start).line + 1}`, kind, text });
    }
  };
  const visit = (node: ts.Node): void => {
    if (ts.isNewExpression(node) && /Error$/.test(node.expression.getText())) {
      const name = node.expression.getText();
      if (name === 'InvalidInputError') add('rule', node.arguments?.[1]);
      else if (name === 'SessionsConfigurationError') add('configuration', withSpaces(node.arguments?.[0]));
      else if (!PARTS.test(name)) add('error', node.arguments?.find(withSpaces));
    } else if (ts.isCallExpression(node)) {
      const callee = node.expression;
      const name = ts.isPropertyAccessExpression(callee) ? callee.name.text : callee.getText();
      if (callee.kind === ts.SyntaxKind.SuperKeyword && isErrorClass(node)) add('error', withSpaces(node.arguments[0]));
      else if (
        ts.isPropertyAccessExpression(callee) &&
        LEVELS.includes(name) &&
        /logger$/i.test(callee.expression.getText())
      ) {
        add('log', node.arguments[0]);
      } else if (CHECKS.test(name)) add('rule', node.arguments.at(-1));
      else if (DESCRIBES.test(name) && /openapi/.test(file)) {
        add('description', node.arguments.at(-1));
      }
    } else if (ts.isPropertyAssignment(node)) {
      const name = node.name.getText();
      if (name === 'description' || (/^\d+$/.test(name) && /openapi/.test(file))) add('description', node.initializer);
    } else if (isOfMessages && ts.isReturnStatement(node)) {
      add('error', withSpaces(node.expression));
    } else if (isOfMessages && ts.isArrowFunction(node) && !ts.isBlock(node.body)) {
      add('error', withSpaces(node.body));
    } else if (ts.isVariableDeclaration(node)) {
      if (/_RULE$/.test(node.name.getText())) add('rule', node.initializer);
      else if (node.name.getText() === 'message' && /errors?\.ts$/.test(file)) add('error', node.initializer);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** Other arguments of errors are ids, names and codes; a message has spaces. */
function withSpaces(node: ts.Expression | undefined): ts.Expression | undefined {
  return node && textsOf(node).some(({ text }) => /\s/.test(text)) ? node : undefined;
}

function isErrorClass(node: ts.Node): boolean {
  let at: ts.Node | undefined = node;
  while (at && !ts.isClassDeclaration(at)) at = at.parent;
  return at !== undefined && ts.isClassDeclaration(at) && /Error$/.test(at.name?.text ?? '');
}

/** The literal strings that an expression may have: both sides of a conditional, sums and templates as one. */
function textsOf(node: ts.Expression): { text: string; start: number }[] {
  const start = node.getStart();
  if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) return [{ text: node.text, start }];
  if (ts.isTemplateExpression(node)) {
    return [{ text: node.head.text + node.templateSpans.map(({ literal }) => `{}${literal.text}`).join(''), start }];
  }
  if (ts.isParenthesizedExpression(node) || ts.isAsExpression(node)) return textsOf(node.expression);
  if (ts.isConditionalExpression(node)) return [...textsOf(node.whenTrue), ...textsOf(node.whenFalse)];
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken) {
    const parts = [node.left, node.right].map((side) => textsOf(side)[0]?.text ?? '{}');
    return [{ text: parts.join(''), start }];
  }
  return [];
}
