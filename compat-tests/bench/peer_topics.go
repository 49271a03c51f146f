package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// admin runs fn with an admin client.
func admin(address string, fn func(*kadm.Client) error) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.RetryTimeout(2*time.Minute), kgo.RequestTimeoutOverhead(3*time.Minute),
		kgo.MetadataMinAge(10*time.Millisecond)) // Else it answers for the broker, for five seconds.
	if err != nil {
		return err
	}
	defer client.Close()
	a := kadm.NewClient(client)
	a.SetTimeoutMillis(180_000)
	return fn(a)
}

// makeTopic makes a topic and returns when each of its partitions has taken a
// record. settings are name and value in turn.
func makeTopic(ctx context.Context, address, topic string, partitions int, settings ...string) error {
	configs := make(map[string]*string)
	for i := 0; i+1 < len(settings); i += 2 {
		configs[settings[i]] = &settings[i+1]
	}
	return admin(address, func(a *kadm.Client) error {
		if _, err := a.CreateTopic(ctx, int32(partitions), 1, configs, topic); err != nil {
			return fmt.Errorf("create topic %s: %w", topic, err)
		}
		if err := awaitLeaders(ctx, a, topic, partitions); err != nil {
			return err
		}
		return settle(ctx, address, topic, partitions)
	})
}

func awaitLeaders(ctx context.Context, a *kadm.Client, topic string, partitions int) error {
	for {
		topics, err := a.ListTopics(ctx, topic)
		if err != nil {
			return err
		}
		led := 0
		for _, p := range topics[topic].Partitions {
			if p.Err == nil && p.Leader >= 0 {
				led++
			}
		}
		if led == partitions {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func dropTopic(ctx context.Context, address, topic string) error {
	return admin(address, func(a *kadm.Client) error {
		_, err := a.DeleteTopic(ctx, topic)
		return err
	})
}

func topicEnds(ctx context.Context, address, topic string) (ends []int64, err error) {
	err = admin(address, func(a *kadm.Client) error {
		listed, err := a.ListEndOffsets(ctx, topic)
		if err != nil {
			return err
		}
		ends = make([]int64, len(listed[topic]))
		for p, e := range listed[topic] {
			if e.Err != nil {
				return e.Err
			}
			ends[p] = e.Offset
		}
		return nil
	})
	return ends, err
}
