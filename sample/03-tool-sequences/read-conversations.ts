import { readFileSync } from 'node:fs';
import { type Conversation } from './conversation.js';

/** Reads one conversation per line, as JSON: `{ id, messages }`. @returns `null` if the file does not exist */
export function readConversations(file: string): Conversation[] | null {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  return lines.map((line) => JSON.parse(line) as Conversation);
}
