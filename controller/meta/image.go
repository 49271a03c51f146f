package meta

import "iter"

// Image is the cluster's metadata at one revision. It is immutable and safe for concurrent use.
type Image struct{}

// Revision is the etcd revision that the image shows.
func (i *Image) Revision() int64 { panic("skeleton") }

// ClusterID is 22 characters of URL-safe base64.
func (i *Image) ClusterID() string { panic("skeleton") }

// Topic finds a topic by name, or returns nil.
func (i *Image) Topic(name string) *Topic { panic("skeleton") }

// TopicByID finds a topic by id, or returns nil.
func (i *Image) TopicByID(id TopicID) *Topic { panic("skeleton") }

// Topics goes through all topics by name.
func (i *Image) Topics() iter.Seq[*Topic] { panic("skeleton") }

// TopicsFrom goes through the topics whose names are not below start, by name.
func (i *Image) TopicsFrom(start string) iter.Seq[*Topic] { panic("skeleton") }

// TopicCount is the number of topics.
func (i *Image) TopicCount() int { panic("skeleton") }

// PartitionCount is the number of partitions of all topics.
func (i *Image) PartitionCount() int { panic("skeleton") }

// Brokers lists all registrations by id, fenced ones too; read only.
func (i *Image) Brokers() []*Broker { panic("skeleton") }

// Broker finds a registration, fenced or not, or returns nil.
func (i *Image) Broker(id int32) *Broker { panic("skeleton") }

// Configs are the configs set on a resource; nil when there are none; read only.
func (i *Image) Configs(r Resource) map[string]string { panic("skeleton") }

// Resources goes through the resources of a type that have configs, by name.
func (i *Image) Resources(t ResourceType) iter.Seq[Resource] { panic("skeleton") }

// Deleted tells whether etcd says that the topic was deleted. A topic that is neither here nor deleted is missing: its data is kept.
func (i *Image) Deleted(id TopicID) bool { panic("skeleton") }

// Tombstones goes through the deleted topics whose data some broker may still hold.
func (i *Image) Tombstones() iter.Seq[Tombstone] { panic("skeleton") }

// Features are the finalized feature levels; read only.
func (i *Image) Features() map[string]int16 { panic("skeleton") }
