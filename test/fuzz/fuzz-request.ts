/** ID0, ID1 and so on stand for the ids of sessions that there are, TURN0 and so on for a turn in each; TURN4 is not for clients. */
export interface FuzzRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | null;
}
