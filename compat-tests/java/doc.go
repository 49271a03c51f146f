// Package java starts programs with Kafka's Java clients and Kafka Streams against
// a broker, restarts either under the other, and judges what comes out. The
// programs are a Maven project in this folder.
package java
