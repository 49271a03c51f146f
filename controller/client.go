package controller

import (
	"context"

	"github.com/mainstem/mainstem/controller/meta"
)

// Client is this broker's view of, and hand on, the cluster's metadata.
type Client struct{}

// Open connects to etcd, or starts the embedded one, checks that it belongs to this data directory, and reads the
// image. While an external etcd cannot be reached it says so and tries again until ctx ends.
// The caller holds the exclusive lock of Dir.
func Open(ctx context.Context, o Options) (*Client, error) { panic("skeleton") }

// ClusterID is the cluster's id.
func (c *Client) ClusterID() string { panic("skeleton") }

// Image is the newest known metadata; never nil.
func (c *Client) Image() *meta.Image { panic("skeleton") }

// Subscribe calls fn with every image from now on, in order, from one goroutine for all subscribers; the first call
// carries the whole present image as a delta from nothing, and has returned when Subscribe returns.
// fn must not call Subscribe, WaitRevision or anything that writes metadata.
func (c *Client) Subscribe(fn func(*meta.Image, meta.Delta)) { panic("skeleton") }

// WaitRevision waits until the image has reached rev and all subscribers have taken it in.
func (c *Client) WaitRevision(ctx context.Context, rev int64) error { panic("skeleton") }

// Register announces this broker under its lease, and from then on keeps the lease, or registers again, by itself.
// ID, Epoch, Incarnation and Fenced of b are set by Register. *DuplicateNodeError when another live broker has this id.
func (c *Client) Register(ctx context.Context, b meta.Broker) error { panic("skeleton") }

// Fenced tells whether the lease may have run out (or there is none yet): what is fenced does not acknowledge.
// It reads a local clock only.
func (c *Client) Fenced() bool { panic("skeleton") }

// OnFenceChange calls fn after Fenced changed, from one goroutine.
func (c *Client) OnFenceChange(fn func(fenced bool)) { panic("skeleton") }

// Done is closed when the client cannot go on: superseded, etcd wiped, the embedded etcd failed. Err says why.
func (c *Client) Done() <-chan struct{} { panic("skeleton") }

// Err is why Done is closed; nil before.
func (c *Client) Err() error { panic("skeleton") }

// NewTopic is a topic to create.
type NewTopic struct {
	Name        string
	ID          meta.TopicID // zero: one is chosen
	Assignments [][]int32    // replicas of each partition, the first is the leader
	Configs     map[string]string
	Internal    bool
}

// CreateTopics creates topics, each of them whole or not at all; the image shows those that succeeded, and the subscribers
// have taken them in, when it returns. One error (or nil) a topic. The chosen ids are put into topics.
func (c *Client) CreateTopics(ctx context.Context, topics []NewTopic) []error { panic("skeleton") }

// DeleteTopics deletes topics by id; one error (or nil) each.
func (c *Client) DeleteTopics(ctx context.Context, ids []meta.TopicID) []error { panic("skeleton") }

// CreatePartitions adds partitions to a topic that has exactly from of them.
func (c *Client) CreatePartitions(ctx context.Context, id meta.TopicID, from int, assignments [][]int32) error {
	panic("skeleton")
}

// AckDeleted says that this broker holds no data of these deleted topics any more.
func (c *Client) AckDeleted(ctx context.Context, ids []meta.TopicID) error { panic("skeleton") }

// AlterConfigs replaces the configs of a resource by what change makes of the present ones. It may call change more than
// once. An error of change is returned as it is and nothing is written.
func (c *Client) AlterConfigs(ctx context.Context, r meta.Resource, change func(cur map[string]string) (map[string]string, error)) error {
	panic("skeleton")
}

// AllocateProducerIDs takes a block of n producer ids that nobody else ever gets.
func (c *Client) AllocateProducerIDs(ctx context.Context) (first int64, n int, err error) {
	panic("skeleton")
}

// RaiseEpochs raises the leader epoch of every partition that this broker leads by the same amount, at least 1 (more when its
// log has seen newer epochs than etcd shows), in one write. It is called once after each opening of the log, after
// Register; the image shows the new epochs when it returns.
func (c *Client) RaiseEpochs(ctx context.Context, by int32) error { panic("skeleton") }

// Close gives up the registration and stops, the embedded etcd too.
func (c *Client) Close(ctx context.Context) error { panic("skeleton") }
