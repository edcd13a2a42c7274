import { Injectable } from '@nestjs/common';

export interface Order {
  readonly id: string;
  readonly item: string;
  readonly euros: number;
  readonly status: 'being packed' | 'shipped' | 'delivered';
}

export interface Refund {
  readonly receipt: string;
  readonly euros: number;
}

/** Replaces the systems of a shop. */
@Injectable()
export class OrdersService {
  private readonly orders = new Map<string, Order>([
    ['7', { id: '7', item: 'a lamp', euros: 40, status: 'shipped' }],
    ['8', { id: '8', item: 'a chair', euros: 90, status: 'delivered' }],
    ['9', { id: '9', item: 'a table', euros: 210, status: 'being packed' }],
  ]);
  private readonly refunds = new Map<string, Refund>();

  /** @throws Error, whose message the model reads */
  find(id: string): Order {
    const order = this.orders.get(id);
    if (!order) throw new Error(`There is no order ${id}.`);
    return order;
  }

  /** Pays once per key, even if it is called again. */
  refund(id: string, euros: number, key: string): Refund {
    this.find(id);
    const refund = this.refunds.get(key) ?? { receipt: `R-${id}-${this.refunds.size + 1}`, euros };
    this.refunds.set(key, refund);
    return refund;
  }
}
