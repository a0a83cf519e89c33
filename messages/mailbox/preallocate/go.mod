// What raft-wal needs of etcd 3.3, which nobody mends any more: see go.mod of the project.
module github.com/coreos/etcd

go 1.26.0
