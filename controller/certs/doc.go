// Package certs makes what a release of the chart needs and no user should have to
// make: a CA of its own, certificates signed by it, and the keys of --secret-file. It
// fills Secrets that the chart made empty, so that it needs the right to read and
// write these and no others, and what is there survives upgrades.
//
// It is run once with each release and then every day, see charts/weir. Who serves
// reads the files again without a restart.
package certs
