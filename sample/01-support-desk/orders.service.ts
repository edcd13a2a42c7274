import { setTimeout as delay } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';

export interface Order {
  readonly id: string;
  readonly status: 'being packed' | 'shipped' | 'delivered';
}

/** Replaces the systems of a shop. */
@Injectable()
export class OrdersService {
  private readonly orders = new Map<string, Order>([
    ['7', { id: '7', status: 'shipped' }],
    ['8', { id: '8', status: 'delivered' }],
    ['9', { id: '9', status: 'being packed' }],
  ]);
  private readonly refunds = new Map<string, string>();

  find(id: string): Order | null {
    return this.orders.get(id) ?? null;
  }

  /** Looks an order up, slowly, like a real warehouse. */
  async askWarehouse(id: string, signal: AbortSignal): Promise<string> {
    await delay(3000, undefined, { signal });
    return this.orders.has(id) ? `Parcel ${id} has left the warehouse.` : `The warehouse knows no parcel ${id}.`;
  }

  /** Pays once per key, even if it is called again. */
  refund(orderId: string, key: string): string {
    const receipt = this.refunds.get(key) ?? `R-${orderId}-${this.refunds.size + 1}`;
    this.refunds.set(key, receipt);
    return receipt;
  }
}
