package protocol

// never is a version that no request has.
const never = 0x7fff

// beyondKmsg are versions that Kafka 4.3 counts as unstable and kmsg does not know. A row of the API table that serves one
// decodes it by hand.
var beyondKmsg = map[int16]int16{22: 6}

// schemaTable holds the layout of every request that a broker listener of
// Kafka 4.3 serves, whether this server serves it or not. The notation is
// explained at parseSchema; the names are those of kmsg. What may be null, and
// from which version a tag is known, is as in Kafka's message definitions.
var schemaTable = [...]struct {
	key      int16
	name     string
	flexible int16
	layout   string
}{
	{0, "Produce", 9, "TransactionID:str/3? Acks:i16 TimeoutMillis:i32 Topics:[Topic:str/0-12 TopicID:uuid/13 " +
		"Partitions:[Partition:i32 Records:bytes?]]"},
	{1, "Fetch", 12, "ReplicaID:i32/0-14 MaxWaitMillis:i32 MinBytes:i32 MaxBytes:i32/3 IsolationLevel:i8/4 SessionID:i32/7 " +
		"SessionEpoch:i32/7 Topics:[Topic:str/0-12 TopicID:uuid/13 Partitions:[Partition:i32 CurrentLeaderEpoch:i32/9 " +
		"FetchOffset:i64 LastFetchedEpoch:i32/12 LogStartOffset:i64/5 PartitionMaxBytes:i32 " +
		"{0:ReplicaDirectoryID:uuid/17 1:HighWatermark:i64/18}]] ForgottenTopics:[Topic:str/7-12 TopicID:uuid/13 " +
		"Partitions:[i32]]/7 Rack:str/11 {0:ClusterID:str/12? 1:ReplicaState:(ID:i32 Epoch:i64)/15}"},
	{2, "ListOffsets", 6, "ReplicaID:i32 IsolationLevel:i8/2 Topics:[Topic:str Partitions:[Partition:i32 CurrentLeaderEpoch:i32/4 " +
		"Timestamp:i64 MaxNumOffsets:i32/0-0]] TimeoutMillis:i32/10"},
	{3, "Metadata", 9, "Topics:[TopicID:uuid/10 Topic:str?10]?1 AllowAutoTopicCreation:bool/4 " +
		"IncludeClusterAuthorizedOperations:bool/8-10 IncludeTopicAuthorizedOperations:bool/8"},
	{8, "OffsetCommit", 8, "Group:str Generation:i32/1 MemberID:str/1 InstanceID:str/7? RetentionTimeMillis:i64/2-4 " +
		"Topics:[Topic:str/0-9 TopicID:uuid/10 Partitions:[Partition:i32 Offset:i64 Timestamp:i64/1-1 " +
		"LeaderEpoch:i32/6 Metadata:str?]]"},
	{9, "OffsetFetch", 6, "Group:str/0-7 Topics:[Topic:str Partitions:[i32]]/0-7?2 Groups:[Group:str MemberID:str/9? MemberEpoch:i32/9 " +
		"Topics:[Topic:str/8-9 TopicID:uuid/10 Partitions:[i32]]?]/8 RequireStable:bool/7"},
	{10, "FindCoordinator", 3, "CoordinatorKey:str/0-3 CoordinatorType:i8/1 CoordinatorKeys:[str]/4"},
	{11, "JoinGroup", 6, "Group:str SessionTimeoutMillis:i32 RebalanceTimeoutMillis:i32/1 MemberID:str InstanceID:str/5? " +
		"ProtocolType:str Protocols:[Name:str Metadata:bytes] Reason:str/8?"},
	{12, "Heartbeat", 4, "Group:str Generation:i32 MemberID:str InstanceID:str/3?"},
	{13, "LeaveGroup", 4, "Group:str MemberID:str/0-2 Members:[MemberID:str InstanceID:str? Reason:str/5?]/3"},
	{14, "SyncGroup", 4, "Group:str Generation:i32 MemberID:str InstanceID:str/3? ProtocolType:str/5? Protocol:str/5? " +
		"GroupAssignment:[MemberID:str MemberAssignment:bytes]"},
	{15, "DescribeGroups", 5, "Groups:[str] IncludeAuthorizedOperations:bool/3"},
	{16, "ListGroups", 3, "StatesFilter:[str]/4 TypesFilter:[str]/5"},
	{17, "SaslHandshake", never, "Mechanism:str"},
	{18, "ApiVersions", 3, "ClientSoftwareName:str/3 ClientSoftwareVersion:str/3 ClusterID:str/5? NodeID:i32/5"},
	{19, "CreateTopics", 5, "Topics:[Topic:str NumPartitions:i32 ReplicationFactor:i16 ReplicaAssignment:[Partition:i32 Replicas:[i32]] " +
		"Configs:[Name:str Value:str?]] TimeoutMillis:i32 ValidateOnly:bool/1"},
	{20, "DeleteTopics", 4, "TopicNames:[str]/0-5 Topics:[Topic:str? TopicID:uuid]/6 TimeoutMillis:i32"},
	{21, "DeleteRecords", 2, "Topics:[Topic:str Partitions:[Partition:i32 Offset:i64]] TimeoutMillis:i32"},
	{22, "InitProducerId", 2, "TransactionalID:str? TransactionTimeoutMillis:i32 ProducerID:i64/3 ProducerEpoch:i16/3 " +
		"Enable2PC:bool/6 KeepPreparedTxn:bool/6"},
	{23, "OffsetForLeaderEpoch", 4, "ReplicaID:i32/3 Topics:[Topic:str Partitions:[Partition:i32 CurrentLeaderEpoch:i32/2 LeaderEpoch:i32]]"},
	{24, "AddPartitionsToTxn", 3, "TransactionalID:str/0-3 ProducerID:i64/0-3 ProducerEpoch:i16/0-3 Topics:[Topic:str Partitions:[i32]]/0-3 " +
		"Transactions:[TransactionalID:str ProducerID:i64 ProducerEpoch:i16 VerifyOnly:bool Topics:[Topic:str " +
		"Partitions:[i32]]]/4"},
	{25, "AddOffsetsToTxn", 3, "TransactionalID:str ProducerID:i64 ProducerEpoch:i16 Group:str"},
	{26, "EndTxn", 3, "TransactionalID:str ProducerID:i64 ProducerEpoch:i16 Commit:bool"},
	{27, "WriteTxnMarkers", 1, "Markers:[ProducerID:i64 ProducerEpoch:i16 Committed:bool Topics:[Topic:str Partitions:[i32]] " +
		"CoordinatorEpoch:i32 TransactionVersion:i8/2]"},
	{28, "TxnOffsetCommit", 3, "TransactionalID:str Group:str ProducerID:i64 ProducerEpoch:i16 Generation:i32/3 MemberID:str/3 " +
		"InstanceID:str/3? Topics:[Topic:str/0-5 TopicID:uuid/6 Partitions:[Partition:i32 Offset:i64 " +
		"LeaderEpoch:i32/2 Metadata:str?]]"},
	{29, "DescribeAcls", 2, "ResourceType:i8 ResourceName:str? ResourcePatternType:i8/1 Principal:str? Host:str? Operation:i8 " +
		"PermissionType:i8"},
	{30, "CreateAcls", 2, "Creations:[ResourceType:i8 ResourceName:str ResourcePatternType:i8/1 Principal:str Host:str Operation:i8 " +
		"PermissionType:i8]"},
	{31, "DeleteAcls", 2, "Filters:[ResourceType:i8 ResourceName:str? ResourcePatternType:i8/1 Principal:str? Host:str? Operation:i8 " +
		"PermissionType:i8]"},
	{32, "DescribeConfigs", 4, "Resources:[ResourceType:i8 ResourceName:str ConfigNames:[str]?] IncludeSynonyms:bool/1 " +
		"IncludeDocumentation:bool/3"},
	{33, "AlterConfigs", 2, "Resources:[ResourceType:i8 ResourceName:str Configs:[Name:str Value:str?]] ValidateOnly:bool"},
	{34, "AlterReplicaLogDirs", 2, "Dirs:[Dir:str Topics:[Topic:str Partitions:[i32]]]"},
	{35, "DescribeLogDirs", 2, "Topics:[Topic:str Partitions:[i32]]?"},
	{36, "SaslAuthenticate", 2, "SASLAuthBytes:bytes"},
	{37, "CreatePartitions", 2, "Topics:[Topic:str Count:i32 Assignment:[Replicas:[i32]]?] TimeoutMillis:i32 ValidateOnly:bool"},
	{38, "CreateDelegationToken", 2, "OwnerPrincipalType:str/3? OwnerPrincipalName:str/3? Renewers:[PrincipalType:str PrincipalName:str] " +
		"MaxLifetimeMillis:i64"},
	{39, "RenewDelegationToken", 2, "HMAC:bytes RenewTimeMillis:i64"},
	{40, "ExpireDelegationToken", 2, "HMAC:bytes ExpiryPeriodMillis:i64"},
	{41, "DescribeDelegationToken", 2, "Owners:[PrincipalType:str PrincipalName:str]?"},
	{42, "DeleteGroups", 2, "Groups:[str]"},
	{43, "ElectLeaders", 2, "ElectionType:i8/1 Topics:[Topic:str Partitions:[i32]]? TimeoutMillis:i32"},
	{44, "IncrementalAlterConfigs", 1, "Resources:[ResourceType:i8 ResourceName:str Configs:[Name:str Op:i8 Value:str?]] ValidateOnly:bool"},
	{45, "AlterPartitionReassignments", 0, "TimeoutMillis:i32 AllowReplicationFactorChange:bool/1 Topics:[Topic:str Partitions:[Partition:i32 " +
		"Replicas:[i32]?]]"},
	{46, "ListPartitionReassignments", 0, "TimeoutMillis:i32 Topics:[Topic:str Partitions:[i32]]?"},
	{47, "OffsetDelete", never, "Group:str Topics:[Topic:str Partitions:[Partition:i32]]"},
	{48, "DescribeClientQuotas", 1, "Components:[EntityType:str MatchType:i8 Match:str?] Strict:bool"},
	{49, "AlterClientQuotas", 1, "Entries:[Entity:[Type:str Name:str?] Ops:[Key:str Value:f64 Remove:bool]] ValidateOnly:bool"},
	{50, "DescribeUserScramCredentials", 0, "Users:[Name:str]?"},
	{51, "AlterUserScramCredentials", 0, "Deletions:[Name:str Mechanism:i8] Upsertions:[Name:str Mechanism:i8 Iterations:i32 Salt:bytes " +
		"SaltedPassword:bytes]"},
	{55, "DescribeQuorum", 0, "Topics:[Topic:str Partitions:[Partition:i32]]"},
	{57, "UpdateFeatures", 0, "TimeoutMillis:i32 FeatureUpdates:[Feature:str MaxVersionLevel:i16 AllowDowngrade:bool/0-0 UpgradeType:i8/1] " +
		"ValidateOnly:bool/1"},
	{60, "DescribeCluster", 0, "IncludeClusterAuthorizedOperations:bool EndpointType:i8/1 IncludeFencedBrokers:bool/2"},
	{61, "DescribeProducers", 0, "Topics:[Topic:str Partitions:[i32]]"},
	{64, "UnregisterBroker", 0, "BrokerID:i32"},
	{65, "DescribeTransactions", 0, "TransactionalIDs:[str]"},
	{66, "ListTransactions", 0, "StateFilters:[str] ProducerIDFilters:[i64] DurationFilterMillis:i64/1 TransactionalIDPattern:str/2?"},
	{68, "ConsumerGroupHeartbeat", 0, "Group:str MemberID:str MemberEpoch:i32 InstanceID:str? RackID:str? RebalanceTimeoutMillis:i32 " +
		"SubscribedTopicNames:[str]? SubscribedTopicRegex:str/1? ServerAssignor:str? Topics:[TopicID:uuid " +
		"Partitions:[i32]]?"},
	{69, "ConsumerGroupDescribe", 0, "Groups:[str] IncludeAuthorizedOperations:bool"},
	{74, "ListConfigResources", 0, "ResourceTypes:[i8]/1"},
	{75, "DescribeTopicPartitions", 0, "Topics:[Topic:str] ResponsePartitionLimit:i32 Cursor:(Topic:str Partition:i32)?"},
	{76, "ShareGroupHeartbeat", 0, "GroupID:str MemberID:str MemberEpoch:i32 RackID:str? SubscribedTopicNames:[str]?"},
	{77, "ShareGroupDescribe", 0, "GroupIDs:[str] IncludeAuthorizedOperations:bool"},
	{78, "ShareFetch", 0, "GroupID:str? MemberID:str? ShareSessionEpoch:i32 MaxWaitMillis:i32 MinBytes:i32 MaxBytes:i32 " +
		"MaxRecords:i32/1 BatchSize:i32/1 ShareAcquireMode:i8/2 IsRenewAck:bool/2 Topics:[TopicID:uuid " +
		"Partitions:[Partition:i32 PartitionMaxBytes:i32/0-0 AcknowledgementBatches:[FirstOffset:i64 LastOffset:i64 " +
		"AcknowledgeTypes:[i8]]]] ForgottenTopicsData:[TopicID:uuid Partitions:[i32]]"},
	{79, "ShareAcknowledge", 0, "GroupID:str? MemberID:str? ShareSessionEpoch:i32 IsRenewAck:bool/2 Topics:[TopicID:uuid " +
		"Partitions:[Partition:i32 AcknowledgementBatches:[FirstOffset:i64 LastOffset:i64 AcknowledgeTypes:[i8]]]]"},
	{80, "AddRaftVoter", 0, "ClusterID:str? TimeoutMillis:i32 VoterID:i32 VoterDirectoryID:uuid Listeners:[Name:str Host:str Port:u16] " +
		"AckWhenCommitted:bool/1"},
	{81, "RemoveRaftVoter", 0, "ClusterID:str? VoterID:i32 VoterDirectoryID:uuid"},
	{83, "InitializeShareGroupState", 0, "GroupID:str Topics:[TopicID:uuid Partitions:[Partition:i32 StateEpoch:i32 StartOffset:i64]]"},
	{84, "ReadShareGroupState", 0, "GroupID:str Topics:[TopicID:uuid Partitions:[Partition:i32 LeaderEpoch:i32]]"},
	{85, "WriteShareGroupState", 0, "GroupID:str Topics:[TopicID:uuid Partitions:[Partition:i32 StateEpoch:i32 LeaderEpoch:i32 StartOffset:i64 " +
		"DeliveryCompleteCount:i32/1 StateBatches:[FirstOffset:i64 LastOffset:i64 DeliveryState:i8 " +
		"DeliveryCount:i16]]]"},
	{86, "DeleteShareGroupState", 0, "GroupID:str Topics:[TopicID:uuid Partitions:[Partition:i32]]"},
	{87, "ReadShareGroupStateSummary", 0, "GroupID:str Topics:[TopicID:uuid Partitions:[Partition:i32 LeaderEpoch:i32]]"},
	{88, "StreamsGroupHeartbeat", 0, "Group:str MemberID:str MemberEpoch:i32 EndpointInformationEpoch:i32 InstanceID:str? RackID:str? " +
		"RebalanceTimeoutMillis:i32 Topology:(Epoch:i32 Subtopologies:[SubtopologyID:str SourceTopics:[str] " +
		"SourceTopicRegex:[str] StateChangelogTopics:[Topic:str NumPartitions:i32 ReplicationFactor:i16 " +
		"Configs:[Key:str Value:str]] RepartitionSinkTopics:[str] RepartitionSourceTopics:[Topic:str " +
		"NumPartitions:i32 ReplicationFactor:i16 Configs:[Key:str Value:str]] CopartitionGroups:[SourceTopics:[i16] " +
		"SourceTopicRegex:[i16] RepartitionSourceTopics:[i16]]])? ActiveTasks:[SubtopologyID:str Partitions:[i32]]? " +
		"StandbyTasks:[SubtopologyID:str Partitions:[i32]]? WarmupTasks:[SubtopologyID:str Partitions:[i32]]? " +
		"ProcessID:str? UserEndpoint:(Host:str Port:u16)? ClientTags:[Key:str Value:str]? " +
		"TaskOffsets:[SubtopologyID:str Partition:i32 Offset:i64]? TaskEndOffsets:[SubtopologyID:str Partition:i32 " +
		"Offset:i64]? ShutdownApplication:bool"},
	{89, "StreamsGroupDescribe", 0, "Groups:[str] IncludeAuthorizedOperations:bool IncludeTopologyDescription:bool/1"},
	{90, "DescribeShareGroupOffsets", 0, "Groups:[GroupID:str Topics:[Topic:str Partitions:[i32]]?]"},
	{91, "AlterShareGroupOffsets", 0, "GroupID:str Topics:[Topic:str Partitions:[Partition:i32 StartOffset:i64]]"},
	{92, "DeleteShareGroupOffsets", 0, "GroupID:str Topics:[Topic:str]"},
}
