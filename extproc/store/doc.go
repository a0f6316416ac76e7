// Package store holds stored responses: the [Entry], its [Body], and the
// [Store] that keeps entries by key and variant.
//
// An entry is handed from the stream that fetched it to those that wait for it
// and to the store, while its body may still grow. All of it but the body is
// immutable from then on, and the body only grows: readers need no locks of
// their own.
//
// storetest is the suite that every Store passes; memory is the store of one
// process.
package store
