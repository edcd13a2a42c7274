import { Server } from 'node:http';
import { Server as SecureServer } from 'node:https';
import { Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';

/** The connections of the application's HTTP server, if it has one. */
@Injectable()
export class HttpConnections {
  constructor(private readonly adapterHost: HttpAdapterHost) {}

  /**
   * Closes keep-alive connections after their current request. Otherwise the server would never close: while it closes, it
   * still serves open connections, and an EventSource reconnects over its own every three seconds.
   */
  disableKeepAlive(): void {
    const server: unknown = this.adapterHost.httpAdapter?.getHttpServer();
    if (server instanceof Server || server instanceof SecureServer) server.keepAliveTimeout = 1;
  }
}
