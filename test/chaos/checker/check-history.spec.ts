import { checkHistory } from './check-history.js';
import { tellStory } from './simulation/story.js';

const LIMITS = { leaseMs: 2000 };

describe('checkHistory', () => {
  it('TRN-15 finds nothing wrong with a run in which workers were killed and frozen and answers were lost', () => {
    const { entries, contents } = tellStory();
    expect(checkHistory(entries, contents, LIMITS).violations).toEqual([]);
  });
});
