import { type ArgumentMetadata, BadRequestException, Injectable, ValidationPipe } from '@nestjs/common';

/** The deepest nesting that this application accepts. */
const MAX_DEPTH = 8;

/**
 * Nest's ValidationPipe, set to reject unknown keys. By itself it drops keys that every object inherits, such as `__proto__`, and walks
 * nested values until the stack overflows. This pipe rejects both first.
 */
@Injectable()
export class StrictValidationPipe extends ValidationPipe {
  constructor() {
    super({ whitelist: true, forbidNonWhitelisted: true, transform: true });
  }

  override async transform(value: unknown, metadata: ArgumentMetadata): Promise<unknown> {
    if (metadata.type === 'body' || metadata.type === 'query') assertOrdinary(value, 1);
    return super.transform(value, metadata);
  }
}

function assertOrdinary(value: unknown, depth: number): void {
  if (typeof value !== 'object' || value === null) return;
  if (depth > MAX_DEPTH) throw new BadRequestException(`values nested deeper than ${MAX_DEPTH} should not exist`);
  for (const [key, item] of Object.entries(value)) {
    if (key in Object.prototype) throw new BadRequestException(`property ${key} should not exist`);
    assertOrdinary(item, depth + 1);
  }
}
