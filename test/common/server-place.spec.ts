import { assertUrlIsSet, serverPlace } from '../../lib/common/server-place.js';

it.each([
  [{ url: undefined }, 'connection.url is undefined'],
  [{ url: '', host: '' }, 'connection.url is empty'],
  [{ connectionString: undefined, max: 3 }, 'connection.connectionString is undefined'],
])('NST-04 a URL that is not set does not mean this machine: %j', (connection, message) => {
  expect(() => assertUrlIsSet(connection, 'connection.')).toThrow(message);
});

it.each([
  {},
  { max: 3 },
  { url: 'redis://db' },
  { url: undefined, host: 'db' },
  { url: undefined, path: '/run/redis.sock' },
  { url: undefined, sentinels: [{ host: 'db', port: 26_379 }] },
])('NST-04 a connection that says otherwise where its server is needs no URL: %j', (connection) => {
  expect(() => assertUrlIsSet(connection, 'connection.')).not.toThrow();
});

it.each([
  [{ url: 'postgres://ann:secret@db:5433/shop' }, 'db:5433/shop'],
  [{ url: 'postgres://db' }, 'db:5432'],
  [{ host: 'db', port: 1 }, 'db:1'],
  [{ url: 'no URL' }, undefined],
  // Passwords that are not escaped.
  [{ url: 'postgres://ann:12/34@db:5432/shop' }, undefined],
  [{ url: 'postgres://12345/ab?c@db' }, undefined],
  [{ url: 'postgres://12345/ab#c@db' }, undefined],
])('NST-22 a log names the server and never a password: %j', (connection, place) => {
  expect(serverPlace(connection, 5432)).toBe(place);
});
