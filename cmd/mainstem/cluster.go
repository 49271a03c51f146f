package main

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
)

type clusterInfo struct {
	Cluster    string       `json:"cluster_id"`
	Controller int32        `json:"controller"`
	Topics     int          `json:"topics"`
	Partitions int          `json:"partitions"`
	Brokers    []brokerInfo `json:"brokers"`
}

type brokerInfo struct {
	ID      int32   `json:"id"`
	Address string  `json:"address"`
	Rack    *string `json:"rack"`
}

func newCluster(c *console) *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Show the cluster's id and its brokers",
		Args:  needArgs("", 0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return r.admin(cmd.Context(), r.cluster)
		},
	}
	r = addRemote(cmd, c)
	return cmd
}

func (r *remote) cluster(ctx context.Context, adm *kadm.Client) error {
	m, err := adm.Metadata(ctx)
	if err != nil {
		return fmt.Errorf("ask for the cluster: %w", err)
	}
	info := clusterInfo{Cluster: m.Cluster, Controller: m.Controller, Topics: len(m.Topics)}
	for _, t := range m.Topics {
		info.Partitions += len(t.Partitions)
	}
	for _, b := range m.Brokers {
		info.Brokers = append(info.Brokers, brokerInfo{
			ID:      b.NodeID,
			Address: net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))),
			Rack:    b.Rack,
		})
	}
	if r.json {
		return printJSON(r.c.out, info)
	}
	if err := printf(r.c.out, "cluster %s: %d topics, %d partitions\n", info.Cluster, info.Topics, info.Partitions); err != nil {
		return err
	}
	t := table{heading: []string{"BROKER", "ADDRESS", "RACK", "CONTROLLER"}}
	for _, b := range info.Brokers {
		rack, controller := "-", ""
		if b.Rack != nil && *b.Rack != "" {
			rack = *b.Rack
		}
		if b.ID == info.Controller {
			controller = "yes"
		}
		t.add(itoa(b.ID), b.Address, rack, controller)
	}
	return t.print(r.c.out)
}
