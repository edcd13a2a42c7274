import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

/** This checkout's `bench/`, from where this file is when it runs, which is `build/bench/`. */
export const BENCH = fileURLToPath(new URL('../../bench/', import.meta.url));

/** As much of echarts as is used here. */
interface Echarts {
  init(element: null, theme: null, options: { renderer: 'svg'; ssr: true; width: number; height: number }): Drawing;
}

interface Drawing {
  setOption(options: object): void;
  renderToSVGString(): string;
  dispose(): void;
}

/** @returns an SVG. Echarts is installed in `bench/` alone, so it is looked for there. */
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

/** Echarts numbers what it draws through the process; the same chart shall be the same file. */
function renumbered(svg: string): string {
  const names = new Map<string, string>();
  return svg.replace(/zr\d+-[a-z]+-?\d+/g, (name) => {
    if (!names.has(name)) names.set(name, `drawn-${names.size}`);
    return names.get(name)!;
  });
}
