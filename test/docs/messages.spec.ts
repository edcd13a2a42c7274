import { readdirSync, readFileSync } from 'node:fs';
import ts from 'typescript';

/**
 * The kinds of messages. A rule follows the path of a value, so it starts with a small letter. Rules and messages about the
 * configuration must say what was expected, and the other errors with a code what to do. An error without a code, `plain`, is
 * the cause of one with a code, or fails a test of lib/testing.
 */
type Kind = 'error' | 'plain' | 'configuration' | 'rule' | 'log' | 'description';

interface Message {
  readonly at: string;
  readonly kind: Kind;
  /** Placeholders are `{}`. */
  readonly text: string;
}

const FILES = readdirSync('lib', { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => `lib/${file}`);
const LEVELS = ['error', 'warn', 'log', 'debug', 'verbose', 'fatal'];
/** Functions of lib that build an error, or check a condition and throw one, with the rule that was broken. */
const CHECKS = /^(?:check|fail|refuse|Must|MustHave|reject|wrongPrincipal)$/;
/** Errors that are given a part of their message, which their constructor completes. */
const PARTS = /^(?:SessionState|TooLarge|StateSerialization|UnreadableRecord)Error$/;
/** The message that Nest gives every internal error. */
const OF_NEST = 'Internal server error';
/** The message of a browser for a broken connection, which the client of a tested chat gets. */
const OF_BROWSERS = 'network error';
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
  // `no:` is the value of a setting.
  /\b(?:is|are) no(?:ne)?\b(?!:| (?:longer|more|orchestrator named))/i,
  /\bcomes? (?:about|by (?:itself|themselves))\b/i,
  /\bdoorbells?\b|\brings? (?:a|the) bell\b/i,
  /\bcanceled\b/i,
];
/** What was expected, or an imperative that says what to do. */
const EXPECTATION =
  /\{\} Received:|\b(?:at most|either|allowed|Register|Select|Stop|Shorten|must|requires?|needs?|Expected|Allowed|Missing|Add|Use|Set|Run|Import|Install|Increase|Remove|Pass|Check|Detach|Choose|Deploy|Grant|Implement|Open|Repair|Allow|Make|Repeat|Decorate|Send|Enable)\b/;

/** Verbs of the sentences that say what to do. */
const VERBS =
  'Add|Adopt|Allow|Await|Call|Change|Check|Close|Connect|Create|Detach|Do not|Fork|Give|Grant|Increase|Let|Load|Make|' +
  'Move|Pass|Query|Raise|Read|Repair|Restore|Retry|Return|Run|See|Send|Set|Settle|Sign in|Stream|Update|Use|Wait';
/**
 * An imperative after the fault, an expectation, or the sentence that the work may end. The first sentence is the fault, so a verb
 * at its start does not count.
 */
const CURE = new RegExp(
  [
    `[.:;}] (?:${VERBS})\\b`,
    `(?:[:;] |\\b(?:If|To) [^.]+, )(?:${VERBS.toLowerCase()})\\b`,
    '\\b(?:must|at most|Expected|Allowed)\\b|\\bIt has: ',
    'result is not used\\.',
  ].join('|'),
);
/** Messages of errors without a cure. */
const WITHOUT_CURE = new Set([
  // SES-14 fixes these texts.
  'Session not found: {}',
  'Session already exists: {}',
  "Invalid transition '{}' from state '{}' for session {}",
  // These end with a rule, a problem or a cure, which is checked where it is written.
  'Orchestrator {}: {}',
  'Orchestrator {}: intent {}: {}',
  'Orchestrator {}: the new state does not match its schema: {} {}',
  'The {} store failed{}. {}',
  'The {} store rejects a value{}.',
  '{} is {}, which cannot be stored as JSON. {}',
  // A proxy has answered, and its status is all that is known.
  'The control plane responded with status {}.',
]);

/** A use of a function of a `*.messages.ts` file. */
interface Use {
  readonly kind: Kind;
  /** The beginning of the message, which the function completes. */
  readonly before: string;
}
/** The uses of these functions in the other files, by name: `turnMessages.failed`. */
const usesOfFunctions = new Map<string, Use[]>();
/** Functions whose string completes a message: what to do about a fault that the message names. */
const CURE_NAME = /Cure$/;

const messages = [
  ...FILES.filter((file) => !isOfMessages(file)).flatMap(messagesOf),
  ...FILES.filter(isOfMessages).flatMap(messagesOf),
];

describe('messages of the package', () => {
  it('DOC finds messages of every kind', () => {
    const kinds = new Set(messages.map(({ kind }) => kind));
    expect([...kinds].sort()).toEqual(['configuration', 'description', 'error', 'log', 'plain', 'rule']);
    expect(messages.length).toBeGreaterThan(300);
  });

  it('NST-03 follows the message rules of the writing guide', () => {
    expect(messages.flatMap(problemsOf)).toEqual([]);
  });

  it('DOC lists only existing messages as exceptions', () => {
    const errors = new Set(messages.flatMap(({ kind, text }) => (kind === 'error' ? [text] : [])));
    expect([...WITHOUT_CURE].filter((text) => !errors.has(text))).toEqual([]);
  });

  it('DOC finds messages in tables and in functions of a file', () => {
    const errors = messages.flatMap(({ kind, text }) => (kind === 'error' ? [text] : []));
    expect(errors).toEqual(
      expect.arrayContaining([
        'The session is busy. Retry later.',
        'The attempt is over: it has failed. Work that still runs can end: its result is not used.',
        expect.stringMatching(/^Turn \{\} has not settled: \{\} waits for the signal \{\}\. Send it: /),
        '{}. Restore the file from a backup.',
      ]),
    );
  });

  it('DOC takes the kind of a message in a messages file from where the message is used', () => {
    const kinds = messages.flatMap(({ at, kind }) => (at.startsWith('lib/common/common.messages.ts') ? [kind] : []));
    expect(new Set(kinds)).toEqual(new Set(['configuration', 'error']));
  });

  it.each<[string, Kind, string, string]>([
    ['a small first letter', 'error', 'the store is closed.', 'capital'],
    ['no full stop', 'log', 'The store is closed', 'full stop'],
    ['a sentence of 31 words', 'log', `${'Word '.repeat(31).trim()}.`, '30 words'],
    ['a phrase of the table', 'description', 'Nobody is signed in.', 'Nobody'],
    ['no expectation', 'rule', 'is wrong.', 'expected'],
    ['no cure', 'error', 'The store is closed.', 'what to do'],
    ['no cure after a fault that starts with a verb', 'error', 'Call {} of the model differs.', 'what to do'],
    ['no cure before a value', 'error', 'The store is closed: {}', 'what to do'],
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
    // A text without words consists of other messages.
    ...(kind !== 'error' || CURE.test(text) || WITHOUT_CURE.has(text) || !/[a-z]/i.test(text)
      ? []
      : ['does not say what to do']),
  ];
  return problems.map((problem) => `${at}: ${problem}: ${text}`);
}

function messagesOf(file: string): Message[] {
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true);
  const found: Message[] = [];
  /** @param before the beginning of the message, which the expression completes */
  const add = (kind: Kind, node: ts.Expression | undefined, before = ''): void => {
    for (const name of node ? calledIn(node) : []) {
      const uses = usesOfFunctions.get(name) ?? [];
      if (!uses.some((use) => use.kind === kind && use.before === before)) uses.push({ kind, before });
      usesOfFunctions.set(name, uses);
    }
    const texts = node ? textsOf(node, kind === 'error' || kind === 'plain') : [];
    for (const { text, start } of texts) {
      if ((!/\s/.test(text) && kind !== 'log') || text === OF_NEST || text === OF_BROWSERS) continue;
      const at = `${file}:${source.getLineAndCharacterOfPosition(start).line + 1}`;
      found.push({ at, kind, text: before + text });
    }
  };
  const visit = (node: ts.Node): void => {
    if (ts.isNewExpression(node) && /Error$/.test(node.expression.getText())) {
      const name = node.expression.getText();
      if (name === 'InvalidInputError') add('rule', node.arguments?.[1]);
      else if (name === 'SessionsConfigurationError') add('configuration', withSpaces(node.arguments?.[0]));
      else if (!PARTS.test(name)) add(kindOfError(name), node.arguments?.find(withSpaces));
    } else if (ts.isCallExpression(node)) {
      const callee = node.expression;
      const name = ts.isPropertyAccessExpression(callee) ? callee.name.text : callee.getText();
      const errorClass = callee.kind === ts.SyntaxKind.SuperKeyword ? errorClassOf(node) : undefined;
      if (errorClass) add(kindOfError(baseOf(errorClass)), withSpaces(node.arguments[0]));
      else if (name === 'wrongResult') add('error', node.arguments[1], 'Orchestrator {}: ');
      else if (
        ts.isPropertyAccessExpression(callee) &&
        LEVELS.includes(name) &&
        /logger$/i.test(callee.expression.getText())
      ) {
        add('log', node.arguments[0]);
      } else if (callee.getText() === 'warnings.push') add('log', node.arguments[0], 'Redis: ');
      else if (CHECKS.test(name)) add('rule', node.arguments.at(-1));
      else if (DESCRIBES.test(name) && /openapi/.test(file)) {
        add('description', node.arguments.at(-1));
      }
    } else if (ts.isPropertyAssignment(node)) {
      const name = node.name.getText();
      if (name === 'description' || (/^\d+$/.test(name) && /openapi/.test(file))) add('description', node.initializer);
    } else if (isOfMessages(file) && ts.isReturnStatement(node)) {
      for (const { kind, before } of usesOf(node)) add(kind, withSpaces(node.expression), before);
    } else if (isOfMessages(file) && ts.isArrowFunction(node) && !ts.isBlock(node.body)) {
      for (const { kind, before } of usesOf(node)) add(kind, withSpaces(node.body), before);
    } else if (ts.isVariableDeclaration(node)) {
      if (/_RULE$/.test(node.name.getText())) add('rule', node.initializer);
      else if (node.name.getText() === 'message' && /errors?\.ts$/.test(file)) add('error', node.initializer);
      else if (node.name.getText() === 'CURES') for (const cure of valuesOf(node)) add('error', cure, '{}. ');
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

function isOfMessages(file: string): boolean {
  return file.endsWith('.messages.ts');
}

/**
 * Returns the uses of the function of a `*.messages.ts` file that has the node. Default: for an error. Helper functions of the file
 * have none: they return parts of messages, which are read with those.
 */
function usesOf(node: ts.Node): readonly Use[] {
  let at = node;
  while (!ts.isSourceFile(at)) {
    const { parent } = at;
    if (ts.isPropertyAssignment(at) && ts.isVariableDeclaration(parent.parent)) {
      const name = at.name.getText();
      const unknown: Use = { kind: CURE_NAME.test(name) ? 'log' : 'error', before: '' };
      return usesOfFunctions.get(`${parent.parent.name.getText()}.${name}`) ?? [unknown];
    }
    at = parent;
  }
  return [];
}

/** The functions of `*.messages.ts` files whose string the expression has or begins with. */
function calledIn(node: ts.Expression): string[] {
  if (ts.isCallExpression(node)) {
    const name = node.expression.getText();
    if (name === 'withMissing') return calledIn(node.arguments[0]);
    return /^\w+Messages\.\w+$/.test(name) ? [name] : [];
  }
  if (ts.isParenthesizedExpression(node)) return calledIn(node.expression);
  if (ts.isConditionalExpression(node)) return [node.whenTrue, node.whenFalse].flatMap(calledIn);
  if (ts.isTemplateExpression(node) && node.head.text === '') return calledIn(node.templateSpans[0].expression);
  return [];
}

/** Other arguments of errors are ids, names and codes; a message has spaces. */
function withSpaces(node: ts.Expression | undefined): ts.Expression | undefined {
  if (!node || calledIn(node).length > 0) return node;
  return textsOf(node, true).some(({ text }) => /\s/.test(text)) ? node : undefined;
}

/** The error class whose constructor has the node. */
function errorClassOf(node: ts.Node): ts.ClassDeclaration | undefined {
  let at: ts.Node | undefined = node;
  while (at && !ts.isClassDeclaration(at)) at = at.parent;
  return at && ts.isClassDeclaration(at) && /Error$/.test(at.name?.text ?? '') ? at : undefined;
}

function baseOf({ heritageClauses }: ts.ClassDeclaration): string {
  const extended = heritageClauses?.find(({ token }) => token === ts.SyntaxKind.ExtendsKeyword);
  return extended?.types[0]?.expression.getText() ?? '';
}

/** @param name of the error's class, or of its base class */
function kindOfError(name: string): Kind {
  return /^(?:Type|Range)?Error$/.test(name) ? 'plain' : 'error';
}

/**
 * The literal strings that an expression may have: both sides of a conditional, sums and templates as one.
 * @param follows whether to include the strings of functions and tables of the file: `${REASONS[why]}`, `${cureOf(value)}`
 */
function textsOf(node: ts.Expression, follows = false): { text: string; start: number }[] {
  const start = node.getStart();
  if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) return [{ text: node.text, start }];
  if (ts.isTemplateExpression(node)) {
    let texts = [node.head.text];
    for (const { expression, literal } of node.templateSpans) {
      const values = follows ? followed(expression) : [];
      texts = joined(texts, values.length > 0 ? values : ['{}']).map((text) => text + literal.text);
    }
    return texts.map((text) => ({ text, start }));
  }
  if (ts.isParenthesizedExpression(node) || ts.isAsExpression(node)) return textsOf(node.expression, follows);
  if (ts.isConditionalExpression(node)) {
    return [...textsOf(node.whenTrue, follows), ...textsOf(node.whenFalse, follows)];
  }
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken) {
    const [left = ['{}'], right = ['{}']] = [node.left, node.right].map((side) => {
      const texts = textsOf(side, follows).map(({ text }) => text);
      return texts.length === 0 ? undefined : follows ? texts : texts.slice(0, 1);
    });
    return joined(left, right).map((text) => ({ text, start }));
  }
  return follows ? followed(node).map((text) => ({ text, start })) : [];
}

function joined(beginnings: readonly string[], ends: readonly string[]): string[] {
  return beginnings.flatMap((beginning) => ends.map((end) => beginning + end));
}

/** The strings that a call of a function of the file may return, or that an access to a table of the file may read. */
function followed(node: ts.Expression): string[] {
  if (!ts.isElementAccessExpression(node) && !ts.isCallExpression(node)) return [];
  const name = node.expression.getText();
  const found = node.getSourceFile().statements.flatMap((statement): readonly ts.Expression[] => {
    if (ts.isCallExpression(node)) {
      return ts.isFunctionDeclaration(statement) && statement.name?.text === name ? resultsOf(statement) : [];
    }
    const variables: readonly ts.VariableDeclaration[] = ts.isVariableStatement(statement)
      ? statement.declarationList.declarations
      : [];
    return variables.filter((variable) => variable.name.getText() === name).flatMap((variable) => valuesOf(variable));
  });
  return found.flatMap((each) => textsOf(each)).map(({ text }) => text);
}

/** The values of a table of constants. */
function valuesOf({ initializer }: ts.VariableDeclaration): ts.Expression[] {
  const properties: readonly ts.ObjectLiteralElementLike[] =
    initializer && ts.isObjectLiteralExpression(initializer) ? initializer.properties : [];
  return properties.flatMap((property) => (ts.isPropertyAssignment(property) ? [property.initializer] : []));
}

/** The expressions that a function returns. */
function resultsOf(within: ts.Node): ts.Expression[] {
  const results: ts.Expression[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node)) return;
    if (ts.isReturnStatement(node) && node.expression) results.push(node.expression);
    ts.forEachChild(node, visit);
  };
  ts.forEachChild(within, visit);
  return results;
}
