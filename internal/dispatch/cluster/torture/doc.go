// Package torture breaks a cluster and compares its results with those of an undisturbed one: hosts
// in network namespaces, hubs and workers as processes that are killed, stopped, cut off and
// started again while they do real research. It holds tests only, apart from those of the cluster, because they need root and the ip
// command, and are skipped elsewhere; the large forms run where MARCHWARDEN_TEST_CLUSTER is full.
package torture
