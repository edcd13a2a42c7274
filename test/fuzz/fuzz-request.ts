/** ID0, ID1 and so on are replaced by ids of existing sessions, TURN0 and so on by a turn in each. TURN4 is not visible to clients. */
export interface FuzzRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | null;
}
