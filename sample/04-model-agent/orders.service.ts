import { Injectable } from '@nestjs/common';
import { ToolError } from './turn-tool.js';

export interface Order {
  readonly id: string;
  readonly item: string;
  readonly euros: number;
  readonly status: 'being packed' | 'shipped' | 'delivered';
}

/** Replaces the systems of a shop. */
@Injectable()
export class OrdersService {
  /** The requested payments, by their idempotency key. */
  readonly payments: { readonly orderId: string; readonly key: string }[] = [];

  private readonly orders = new Map<string, Order>([
    ['7', { id: '7', item: 'a lamp', euros: 40, status: 'shipped' }],
    ['8', { id: '8', item: 'a chair', euros: 90, status: 'delivered' }],
  ]);

  find(id: string): Order {
    const order = this.orders.get(id);
    if (!order) throw new ToolError(`There is no order ${id}.`);
    return order;
  }

  /** Refunds an order. @param key an idempotency key: a bank pays once per key */
  refund(id: string, key: string): string {
    const { euros } = this.find(id);
    this.payments.push({ orderId: id, key });
    return `${euros} euros are on their way, receipt R-${this.payments.length}.`;
  }
}
