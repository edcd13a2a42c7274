export function groupBy<Item, Name>(items: readonly Item[], nameOf: (item: Item) => Name): Map<Name, Item[]> {
  const groups = new Map<Name, Item[]>();
  for (const item of items) addTo(groups, nameOf(item), item);
  return groups;
}

export function addTo<Item, Name>(groups: Map<Name, Item[]>, name: Name, item: Item): void {
  const group = groups.get(name);
  if (group) group.push(item);
  else groups.set(name, [item]);
}
