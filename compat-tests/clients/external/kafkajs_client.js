// kafkajs: write ADDRESS TOPIC CODEC < records, read ADDRESS TOPIC N > records; a JSON record a line.
// It has no reading by assignment, so it reads in a group.
const { Kafka, CompressionTypes, logLevel } = require('kafkajs')
const lines = require('readline')

const [, , verb, address, topic, last] = process.argv
const raw = s => (s === null ? null : Buffer.from(s, 'base64'))
const text = b => (b === null || b === undefined ? null : b.toString('base64'))
const kafka = new Kafka({ clientId: 'kafkajs', brokers: [address], logLevel: logLevel.ERROR })

async function write (codec) {
  const messages = []
  for await (const line of lines.createInterface({ input: process.stdin })) {
    const r = JSON.parse(line)
    const headers = {}
    for (const h of r.headers || []) headers[h.key] = [...(headers[h.key] || []), raw(h.value)]
    messages.push({ key: raw(r.key), value: raw(r.value), headers, partition: 0 })
  }
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 })
  await producer.connect()
  for (const m of messages) {
    await producer.send({ topic, messages: [m], acks: -1, compression: codec === 'gzip' ? CompressionTypes.GZIP : CompressionTypes.None })
  }
  await producer.disconnect()
}

async function read (n) {
  const consumer = kafka.consumer({ groupId: `kafkajs-${topic}-${process.pid}`, maxWaitTimeInMs: 200 })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  let left = n
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, e => reject(e.payload.error))
    consumer.run({
      eachMessage: async ({ message }) => {
        if (left <= 0) return
        const headers = []
        for (const [key, values] of Object.entries(message.headers || {})) {
          for (const value of [].concat(values)) headers.push({ key, value: text(value) })
        }
        process.stdout.write(JSON.stringify({ key: text(message.key), value: text(message.value), headers }) + '\n')
        if (--left === 0) resolve()
      }
    }).catch(reject)
  })
  await consumer.disconnect()
}

(verb === 'write' ? write(last) : read(Number(last))).catch(e => { console.error(e); process.exit(1) })
