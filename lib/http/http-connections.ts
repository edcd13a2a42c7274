import { Server } from 'node:http';
import { Server as SecureServer } from 'node:https';
import { Injectable } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';

/** The connections of the application's HTTP server, where it has one. */
@Injectable()
export class HttpConnections {
  constructor(private readonly adapterHost: HttpAdapterHost) {}

  /**
   * Keeps none alive beyond its request. A server that is closed still serves those, and an EventSource comes again over its own
   * every three seconds, so that it would never end.
   */
  letGo(): void {
    const server: unknown = this.adapterHost.httpAdapter?.getHttpServer();
    if (server instanceof Server || server instanceof SecureServer) server.keepAliveTimeout = 1;
  }
}
