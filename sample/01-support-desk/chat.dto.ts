import { Transform } from 'class-transformer';
import { IsInt, IsNotEmpty, IsOptional, IsString, Max, Min } from 'class-validator';

/** Query parameters are strings. An empty one is an error, not zero. */
const ToInteger = (): PropertyDecorator =>
  Transform(({ value }) => (typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : NaN));

export class StartDto {
  /** The surface of the conversation: `web` for the page. */
  @IsOptional()
  @IsString()
  @IsNotEmpty()
  surface?: string;
}

export class ListDto {
  /** The `nextCursor` of the previous page. */
  @IsOptional()
  @IsString()
  @IsNotEmpty()
  cursor?: string;
}

export class SayDto {
  @IsString()
  @IsNotEmpty()
  input!: string;
}

export class PageDto {
  /** Returns messages or turns after this position. */
  @IsOptional()
  @ToInteger()
  @IsInt()
  @Min(0)
  after?: number;

  @IsOptional()
  @ToInteger()
  @IsInt()
  @Min(1)
  @Max(500)
  limit?: number;
}
