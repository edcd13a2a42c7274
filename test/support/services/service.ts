/** A server that tests need. */
export interface Service {
  readonly name: string;
  /** The environment variable that holds its address; when it is set already, that server is used and none is started. */
  readonly variable: string;
  /** @param folder empty, and the server's own */
  start(folder: string): Promise<RunningService>;
}

export interface RunningService {
  readonly url: string;
  readonly stop: () => Promise<void>;
}
