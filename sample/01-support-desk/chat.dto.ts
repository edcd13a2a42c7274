import { Transform } from 'class-transformer';
import { IsInt, IsNotEmpty, IsOptional, IsString, Max, Min } from 'class-validator';

/** Query parameters are texts; an empty one is a mistake, not a zero. */
const ToInteger = (): PropertyDecorator =>
  Transform(({ value }) => (typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : NaN));

export class StartDto {
  /** Where the conversation is held: the page is `web`. */
  @IsOptional()
  @IsString()
  @IsNotEmpty()
  surface?: string;
}

export class SayDto {
  @IsString()
  @IsNotEmpty()
  input!: string;
}

export class PageDto {
  /** Messages or turns after this position. */
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
