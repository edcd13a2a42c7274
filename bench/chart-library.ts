import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

/** The `bench/` folder of this checkout, relative to the compiled file in `build/bench/`. */
export const BENCH = fileURLToPath(new URL('../../bench/', import.meta.url));

/** The parts of echarts that the benchmarks use. */
interface Echarts {
  init(element: null, theme: null, options: { renderer: 'svg'; ssr: true; width: number; height: number }): Drawing;
}

interface Drawing {
  setOption(options: object): void;
  renderToSVGString(): string;
  dispose(): void;
}

/** @returns an SVG, drawn by echarts, which is installed in `bench/` only */
export function draw(options: object, width: number, height: number): string {
  const echarts = createRequire(BENCH)('echarts') as Echarts;
  const drawing = echarts.init(null, null, { renderer: 'svg', ssr: true, width, height });
  try {
    drawing.setOption({ animation: false, backgroundColor: '#fff', ...options });
    return `${renumbered(drawing.renderToSVGString())}\n`;
  } finally {
    drawing.dispose();
  }
}

/** Renumbers the ids, which echarts counts per process, so that the same chart is the same file. */
function renumbered(svg: string): string {
  const names = new Map<string, string>();
  return svg.replace(/zr\d+-[a-z]+-?\d+/g, (name) => {
    if (!names.has(name)) names.set(name, `drawn-${names.size}`);
    return names.get(name)!;
  });
}
