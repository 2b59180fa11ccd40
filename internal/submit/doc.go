// Package submit hands questions over to those who work on them, and keeps what comes of it:
// all questions of a file, on this machine (Here) or in a cluster (There), one line of results
// each; one question in a cluster, as a researcher (Cluster); and the records of a cluster
// brought into the home folder (Home). An investigator in a cluster asks its members by tasks
// (Dispatcher), and a worker there makes runs of tasks (Serve).
//
// It owns the files of questions and of results, and the list of what was submitted from here.
// How a run is kept on this machine is package runs', how a cluster carries tasks package
// cluster's.
package submit
