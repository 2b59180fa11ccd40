// Package torture breaks a cluster and holds what comes out of it to what comes out of
// one that nobody touched: hosts in network namespaces, hubs and workers as processes
// that are killed, stopped, cut off and started again while they do real research. It
// holds tests only. They need root and the ip command, and are skipped elsewhere; the
// large forms run where MARCHWARDEN_TEST_CLUSTER is full.
package torture
