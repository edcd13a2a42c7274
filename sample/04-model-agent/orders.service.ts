import { Injectable } from '@nestjs/common';
import { ToolError } from './turn-tool.js';

export interface Order {
  readonly id: string;
  readonly item: string;
  readonly euros: number;
  readonly status: 'being packed' | 'shipped' | 'delivered';
}

/** Stands in for the systems of a shop. */
@Injectable()
export class OrdersService {
  /** Every payment that was asked for, by the key that it was asked with. */
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

  /** Pays the money back. @param key a bank would pay once for it, however often it is asked */
  refund(id: string, key: string): string {
    const { euros } = this.find(id);
    this.payments.push({ orderId: id, key });
    return `${euros} euros are on their way, receipt R-${this.payments.length}.`;
  }
}
