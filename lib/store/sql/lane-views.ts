/**
 * Returns a query for LaneViewRows on SQLite and MySQL. It reads only the lane's row and two of its open turns, without
 * their large columns.
 * @param sessionIds a query that returns the session ids
 * @param isOpen the condition for open turns that lets the database use their index
 */
function viewOf(sessionIds: string, isOpen: string): string {
  return `
    SELECT page.session_id AS sessionId, lane.mode AS mode, COALESCE(lane.depth, 0) AS depth, lane.holder AS holder,
      lane.lease_until AS leaseUntil, head.id AS turnId, head.orchestrator AS orchestrator, head.status AS status,
      head.failures AS failures, head.lost AS lost, head.cancel_mode AS cancelMode, head.wait_signal AS waitSignal,
      head.wait_until AS waitUntil, head.accepted_at AS acceptedAt, head.started_at AS startedAt, head.due_at AS dueAt,
      (
        SELECT behind.accepted_at FROM {turn} AS behind
        WHERE behind.session_id = page.session_id AND behind.${isOpen} AND behind.position > head.position
        ORDER BY behind.position LIMIT 1
      ) AS nextAcceptedAt
    FROM (${sessionIds}) AS page
    LEFT JOIN {lane} AS lane ON lane.session_id = page.session_id
    LEFT JOIN {turn} AS head ON head.id = (
      SELECT foremost.id FROM {turn} AS foremost
      WHERE foremost.session_id = page.session_id AND foremost.${isOpen} ORDER BY foremost.position LIMIT 1
    )
    ORDER BY page.session_id`;
}

/** Parameter: a session id. */
export const viewLane = (isOpen: string): string => viewOf('SELECT ? AS session_id', isOpen);

/** Parameters: the id to start after, and the number of lanes. Reads one range of the index of open turns. */
export const viewOpenLanes = (isOpen: string): string =>
  viewOf(
    `SELECT DISTINCT session_id FROM {turn} WHERE ${isOpen} AND session_id > ? ORDER BY session_id LIMIT ?`,
    isOpen,
  );
