import { readFileSync } from 'node:fs';

interface Snapshot {
  readonly snapshot: {
    readonly meta: {
      readonly node_fields: readonly string[];
      readonly node_types: readonly [readonly string[]];
      readonly edge_fields: readonly string[];
      readonly edge_types: readonly [readonly string[]];
    };
  };
  readonly nodes: readonly number[];
  readonly edges: readonly number[];
  readonly strings: readonly string[];
}

/** Edges that keep nothing alive: the engine's string table, and stack values that look like pointers. */
const NOT_HOLDING = ['(Internalized strings)', '(Stack roots)'];

/** The reachable objects of a process, from a heap snapshot (`v8.writeHeapSnapshot`, which collects garbage first). */
export class Heap {
  /** The names of reachable nodes: the class of an object, the content of a string. */
  private readonly objects: string[] = [];
  private readonly strings = new Set<string>();

  private constructor(snapshot: Snapshot) {
    const { node_fields: fields, node_types: types } = snapshot.snapshot.meta;
    const [type, name] = [fields.indexOf('type'), fields.indexOf('name')];
    for (const node of reachable(snapshot)) {
      const kind = types[0][snapshot.nodes[node + type]];
      const named = snapshot.strings[snapshot.nodes[node + name]];
      if (kind === 'object') this.objects.push(named);
      else if (kind === 'string') this.strings.add(named);
    }
  }

  static read(file: string): Heap {
    return new Heap(JSON.parse(readFileSync(file, 'utf8')) as Snapshot);
  }

  /** Returns the distinct matches in strings. */
  texts(pattern: RegExp): string[] {
    return [...new Set([...this.strings].flatMap((text) => text.match(pattern) ?? []))].sort();
  }

  /** Returns the number of objects of a class. */
  instances(className: string): number {
    return this.objects.filter((name) => name === className).length;
  }
}

/** Returns the positions in `nodes` that strong references reach. */
function reachable({ snapshot: { meta }, nodes, edges, strings }: Snapshot): number[] {
  const [width, edgeWidth] = [meta.node_fields.length, meta.edge_fields.length];
  const [name, edgeCount] = [meta.node_fields.indexOf('name'), meta.node_fields.indexOf('edge_count')];
  const [type, to] = [meta.edge_fields.indexOf('type'), meta.edge_fields.indexOf('to_node')];
  const weak = meta.edge_types[0].indexOf('weak');
  const firstEdges = new Uint32Array(nodes.length / width);
  for (let node = 0, edge = 0; node < nodes.length; node += width) {
    firstEdges[node / width] = edge;
    edge += nodes[node + edgeCount] * edgeWidth;
  }
  const seen = new Uint8Array(nodes.length / width);
  const found = [0];
  seen[0] = 1;
  for (let next = 0; next < found.length; next += 1) {
    const node = found[next];
    if (NOT_HOLDING.includes(strings[nodes[node + name]])) continue;
    const first = firstEdges[node / width];
    for (let edge = first; edge < first + nodes[node + edgeCount] * edgeWidth; edge += edgeWidth) {
      const target = edges[edge + to];
      if (edges[edge + type] === weak || seen[target / width] === 1) continue;
      seen[target / width] = 1;
      found.push(target);
    }
  }
  return found;
}
