import { type UIPart } from '../../chat/ui-message.js';
import { type JsonObject, toJson } from '../../common/json.js';
import { InvalidInputError } from '../../common/sessions.error.js';

/**
 * Returns a part of a user's message with the fields that a user may send. Others could be instructions to a provider.
 * @returns `undefined` unless the part is text, a file or `data-*`
 * @throws InvalidInputError
 */
export function toUserPart(part: UIPart, path: string): UIPart | undefined {
  const { type, text, mediaType, url, filename, id, data } = part;
  if (type === 'text') {
    if (typeof text !== 'string') throw new InvalidInputError(`${path}.text`, 'must be a string.');
    return { type, text };
  }
  if (type === 'file') {
    if (typeof mediaType !== 'string') throw new InvalidInputError(`${path}.mediaType`, 'must be a string.');
    if (!isFileUrl(url)) throw new InvalidInputError(`${path}.url`, 'must be a data URL or an absolute http(s) URL.');
    return { type, mediaType, url, ...(typeof filename === 'string' ? { filename } : {}) };
  }
  if (!type.startsWith('data-')) return undefined;
  if (id !== undefined && typeof id !== 'string') throw new InvalidInputError(`${path}.id`, 'must be a string.');
  const json = toJson({ data, id }, path) as JsonObject;
  return { type, ...json };
}

function isFileUrl(url: unknown): boolean {
  return typeof url === 'string' && /^(data:|https?:\/\/)/i.test(url) && URL.canParse(url);
}
