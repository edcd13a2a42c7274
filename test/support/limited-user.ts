import { randomBytes } from 'node:crypto';
import { type SessionsAdapter } from 'nestjs-agent-sessions';
import { typeormAdapter, type TypeormAdapterOptions } from 'nestjs-agent-sessions/typeorm';
import { DataSource } from 'typeorm';
import { type SqlServer } from './servers.js';

/**
 * A user of a server that has only the privileges of the documentation, and tables for it. On MySQL and MariaDB, it may also write
 * while another test makes the server read-only.
 */
export class LimitedUser {
  private constructor(
    /** A connection of an administrator. */
    readonly server: DataSource,
    readonly tablePrefix: string,
    private readonly url: string,
    private readonly type: SqlServer['type'],
    private readonly name: string,
  ) {}

  static async create({ type, url }: SqlServer): Promise<LimitedUser> {
    const tablePrefix = `l${randomBytes(5).toString('hex')}_`;
    const owner = typeormAdapter({ dataSource: { type, url }, tablePrefix, migrationsRun: true });
    await owner.init?.();
    await owner.close?.();
    const server = await new DataSource({ type, url }).initialize();
    const name = `${tablePrefix}user`;
    if (type === 'postgres') await server.query(`CREATE ROLE ${name} LOGIN PASSWORD 'secret'`);
    else {
      await server.query(`CREATE USER ${name} IDENTIFIED BY 'secret'`);
      const [{ version }] = await server.query<[{ version: string }]>('SELECT VERSION() AS version');
      const privilege = version.includes('MariaDB') ? 'READ_ONLY ADMIN' : 'CONNECTION_ADMIN';
      await server.query(`GRANT ${privilege} ON *.* TO ${name}`);
    }
    const own = new URL(url);
    [own.username, own.password] = [name, 'secret'];
    const user = new LimitedUser(server, tablePrefix, own.href, type, name);
    for (const table of await user.tables()) await user.grant('SELECT, INSERT, UPDATE, DELETE', table);
    return user;
  }

  /** Creates a store with the connections of this user. */
  store(options: Partial<TypeormAdapterOptions> = {}): SessionsAdapter {
    const { tablePrefix, type, url } = this;
    return typeormAdapter({ dataSource: { type, url }, tablePrefix, ...options });
  }

  /** @param table its name without prefix */
  async grant(privileges: string, table: string): Promise<void> {
    await this.server.query(`GRANT ${privileges} ON ${this.tablePrefix}${table} TO ${this.name}`);
  }

  async revoke(privileges: string, table: string): Promise<void> {
    await this.server.query(`REVOKE ${privileges} ON ${this.tablePrefix}${table} FROM ${this.name}`);
  }

  async drop(): Promise<void> {
    if (this.type === 'postgres') await this.server.query(`DROP OWNED BY ${this.name}`);
    await this.server.query(`DROP USER ${this.name}`);
    await this.server.destroy();
  }

  private async tables(): Promise<string[]> {
    const rows = await this.server.query<{ name: string }[]>(
      `SELECT table_name AS name FROM information_schema.tables WHERE table_name LIKE '${this.tablePrefix}%'`,
    );
    return rows.map(({ name }) => name.slice(this.tablePrefix.length)).filter((name) => name !== 'migrations');
  }
}
