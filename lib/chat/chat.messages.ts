/** The messages of the errors in chat.errors.ts. */
export const chatMessages = {
  finishedStepChanged: (step: number, partType: string): string =>
    `Step ${step} of the answer differs from what an earlier attempt has shown, in a part of type ${partType}. ` +
    'A finished step must be the same in every attempt: wrap models and tools with durableModel and durableTools.',

  parallelAnswers: (): string =>
    'Another intent of this turn already streams an answer, and a chat shows one answer of a turn. Call streamReply ' +
    'in one intent of a route only. The others can call generateText with a durableModel and return a reply.',

  /** @param scripted the number of answers in the script; `null` if the script is a function */
  modelScriptOver: (scripted: number | null, said: string): string => {
    const cause =
      scripted === null
        ? 'The script of the model has returned no answer'
        : `The script of the model has ${scripted === 1 ? '1 answer' : `${scripted} answers`}, and the model was called again`;
    return `${cause} after ${JSON.stringify(said)}. Add an answer to scriptedModel().`;
  },
};
