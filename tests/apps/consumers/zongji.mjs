// Prints the events of DATABASE from FILE and POSITION on, one JSON value a line, until a row whose
// first column is LAST was inserted.
import ZongJi from '@vlasky/zongji';

const { DATABASE, DATABASE_PORT, DATABASE_USER, DATABASE_PASSWORD, FILE, POSITION, LAST } = process.env;
const reader = new ZongJi({
  host: '127.0.0.1', port: Number(DATABASE_PORT), user: DATABASE_USER, password: DATABASE_PASSWORD,
  database: DATABASE, timezone: 'Z', supportBigNumbers: true,
});
const plain = (key, value) => (typeof value === 'bigint' ? String(value) : value);
reader.on('binlog', (event) => {
  const kind = event.getTypeName();
  if (kind === 'TableMap') return;
  const table = event.tableMap?.[event.tableId];
  if (table && table.parentSchema !== DATABASE) return;
  console.log(JSON.stringify({ kind, table: table?.tableName, rows: event.rows, query: event.query, schema: event.schema }, plain));
  if (event.rows?.some((row) => row.id === Number(LAST))) {
    reader.stop();
    setTimeout(() => process.exit(0), 100);
  }
});
reader.on('error', (error) => {
  console.error(error.message);
  process.exit(1);
});
reader.start({
  serverId: 4712, filename: FILE, position: Number(POSITION),
  includeEvents: ['tablemap', 'writerows', 'updaterows', 'deleterows', 'query', 'xid'],
});
setTimeout(() => process.exit(3), 60000);
