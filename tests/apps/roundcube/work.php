<?php
// Roundcube's own classes at work: work.php SITE PART. Writes a JSON object of outcomes.

define('INSTALL_PATH', $argv[1] . '/');
ini_set('display_errors', 'stderr');
require_once INSTALL_PATH . 'program/include/clisetup.php';

$rcmail = rcmail::get_instance();
$db = $rcmail->get_dbh();
$db->set_debug(false);

if ($argv[2] == 'schema') {
    $db->db_connect('w');
    // What the schema is after each of the updates is lost; the last one counts.
    $made = $db->exec_script(file_get_contents(INSTALL_PATH . 'SQL/mysql.initial.sql'));
    echo $made ? 'made' : 'failed: ' . $db->is_error(), ' ';
    echo rcmail_utils::db_update(INSTALL_PATH . 'SQL', 'roundcube', null, ['errors' => true, 'quiet' => true]) === false ? 'not updated' : 'up to date', ' ';
    echo $db->is_connected() ? 'connected' : 'lost';
    exit(0);
}

$found = [];

function note($step, $outcome)
{
    global $found;
    $found[$step] = json_decode(json_encode($outcome, JSON_INVALID_UTF8_SUBSTITUTE | JSON_PARTIAL_OUTPUT_ON_ERROR), true);
}

function names($result)
{
    $names = [];
    while ($result && ($record = $result->next())) {
        $names[] = [$record['ID'] ?? null, $record['name'] ?? null, $record['email'] ?? null];
    }
    return ['count' => $result ? $result->count : null, 'records' => $names];
}

// Accounts.
foreach (['änne@example.com', "o'hara@example.com", 'third@example.com'] as $name) {
    $user = rcube_user::create($name, 'localhost');
    note("create $name", $user ? [$user->ID, $user->get_username(), $user->list_emails()] : null);
}
note('find a user', rcube_user::query("o'hara@example.com", 'localhost')->ID);
note('find in capitals', (rcube_user::query('THIRD@EXAMPLE.COM', 'localhost') ?: new stdClass())->ID ?? null);
note('find nobody', rcube_user::query('nobody', 'localhost'));
$user = rcube_user::query('änne@example.com', 'localhost');
$rcmail->set_user($user);
note('preferences', [$user->save_prefs(['language' => 'de_DE', 'timezone' => 'Europe/Zurich', 'emoji' => '😀', 'list' => range(1, 40)], true), array_keys($user->get_prefs())]);
note('failed logins', [$user->failed_login(), $user->failed_login(), $user->is_locked()]);
note('touch', $user->touch());

// Identities and responses.
foreach (['Work', 'Überall', "Quote's"] as $n => $name) {
    note("identity $name", $user->insert_identity(['name' => $name, 'email' => "id$n@example.com", 'organization' => 'Örg', 'signature' => str_repeat('sig 😀 ', 300), 'html_signature' => 1]));
}
note('identities', array_map(fn ($i) => [$i['identity_id'], $i['name'], $i['standard']], $user->list_identities()));
note('change an identity', $user->update_identity(3, ['name' => 'Changed', 'bcc' => 'x@example.com']));
note('default', [$user->set_default(4), $user->get_identity()['identity_id'] ?? null]);
note('delete an identity', [$user->delete_identity(5), count($user->list_identities())]);
note('response', [$user->insert_response(['name' => 'Thanks', 'data' => 'Thank you 😀', 'is_html' => false]), $user->insert_response(['name' => 'Danke', 'data' => '<b>Danke</b>', 'is_html' => true])]);
note('change a response', $user->update_response(1, ['name' => 'Thanks!', 'data' => 'Thank you very much', 'is_html' => false]));
note('responses', array_column($user->list_responses(), 'name'));
note('delete a response', [$user->delete_response(2), count($user->list_responses())]);
note('saved search', [$user->insert_search(['type' => rcube_user::SEARCH_MAIL, 'name' => 'Sürch', 'data' => ['a' => 1]]), $user->list_searches(rcube_user::SEARCH_MAIL), $user->get_search(1)]);
note('the same search', $user->insert_search(['type' => rcube_user::SEARCH_MAIL, 'name' => 'Sürch', 'data' => []]));
note('delete a search', $user->delete_search(1));

// Contacts.
$contacts = new rcube_contacts($db, $user->ID);
$contacts->set_pagesize(50);
$people = [['Änne', 'Müller', 'aenne@example.com'], ['Anne', 'Muller', 'anne@example.com'], ['Émile', 'Zola', 'emile@example.org'], ['Zoë', "O'Hara", 'zoe@example.org'], ['Łukasz', 'Łódź', 'lukasz@example.net'],
    ['Иван', 'Иванов', 'ivan@example.net'], ['花子', '山田', 'hanako@example.jp'], ['Straße', 'Strasse', 'strasse@example.de'], ['100%', '_under_', 'percent@example.de'], ['Back\\slash', '"Quotes"', 'back@example.de'],
    ['😀', 'Emoji', 'emoji@example.de'], ['İpek', 'ışık', 'ipek@example.tr']];
$ids = [];
foreach ($people as $n => [$first, $last, $email]) {
    $record = ['name' => "$first $last", 'firstname' => $first, 'surname' => $last, 'email:home' => [$email, "second$n@example.com"], 'phone:work' => ["+41 $n"], 'notes' => str_repeat("note $n ", $n * 20),
        'address:home' => [['street' => "Strasse $n", 'locality' => 'Zürich', 'zipcode' => "80$n"]], 'birthday' => ['1990-01-0' . (1 + $n % 9)]];
    $ids[] = $contacts->insert($record, true);
}
note('contacts', $ids);
note('the same contact', $contacts->insert(['name' => 'Änne Müller', 'email' => ['aenne@example.com']], true));
note('list', names($contacts->list_records(['ID', 'name', 'email'])));
foreach ([['name', 'ASC'], ['surname', 'DESC'], ['email', 'ASC']] as [$column, $order]) {
    $contacts->set_sort_order($column, $order);
    note("sorted by $column", names($contacts->list_records()));
}
$contacts->set_sort_order('name', 'ASC');
$contacts->set_pagesize(5);
$contacts->set_page(2);
note('second page', names($contacts->list_records()));
$contacts->set_page(1);
$contacts->set_pagesize(50);
foreach (['muller', 'MÜLLER', 'zo', 'łódź', 'lodz', 'иван', '山田', 'strasse', '%', '_', '\\', '"', "o'h", '😀', 'ipek', 'isik', 'note 3', 'nothing like this', 'example.de'] as $words) {
    foreach ([0 => 'anywhere', 1 => 'equal', 2 => 'prefix'] as $mode => $how) {
        note("search $words $how", names($contacts->search('*', $words, $mode)));
    }
    $contacts->reset();
    note("search of names $words", names($contacts->search(['name', 'firstname', 'surname'], $words, 0)));
    $contacts->reset();
    note("search of addresses $words", names($contacts->search(['email'], [$words], 0)));
    $contacts->reset();
}
note('search of ids', names($contacts->search('ID', array_slice($ids, 2, 3))));
$contacts->reset();
note('record', array_diff_key($contacts->get_record($ids[2], true) ?: [], ['changed' => 1]));
note('update', [$contacts->update($ids[0], ['name' => 'Änne Changed', 'email:home' => ['new@example.com']]), $contacts->get_record($ids[0], true)['name']]);
note('updated search', names($contacts->search('*', 'changed', 0)));
$contacts->reset();
$group = $contacts->create_group('Freunde & Familie');
$second = $contacts->create_group('Freunde & Familie');
$brief = fn ($groups) => array_map(fn ($g) => [$g['ID'], $g['name']], $groups);
note('groups', [$group, $second, $brief($contacts->list_groups()), $brief($contacts->list_groups('freund', 2))]);
note('members', [$contacts->add_to_group($group['id'], [$ids[0], $ids[1], $ids[3]]), $contacts->add_to_group($group['id'], [$ids[1], $ids[4]]), $contacts->remove_from_group($group['id'], [$ids[0]])]);
note('groups of a contact', $contacts->get_record_groups($ids[1]));
$contacts->set_group($group['id']);
note('list of a group', names($contacts->list_records()));
note('search in a group', names($contacts->search('*', 'o', 0)));
$contacts->reset();
$contacts->set_group(0);
$new = '';
note('rename a group', $contacts->rename_group($group['id'], 'Förderer', $new));
note('delete a group', $contacts->delete_group($second['id']));
note('delete', [$contacts->delete([$ids[7], $ids[8]], false), $contacts->count()->count]);
note('undelete', [$contacts->undelete([$ids[7]]), $contacts->count()->count]);
note('delete for ever', [$contacts->delete([$ids[9]], true), $contacts->count()->count]);
$collected = new rcube_addresses($db, $user->ID, rcube_addressbook::TYPE_RECIPIENT);
foreach ($people as [$first, $last, $email]) {
    $collected->insert(['name' => "$first $last", 'email' => $email]);
}
note('collected', names($collected->list_records()));
note('search of collected', names($collected->search(['name', 'email'], 'mu', 0)));
note('another user', names((new rcube_contacts($db, 2))->list_records()));

// Caches, by rows that are made once and replaced afterwards.
$cache = $rcmail->get_cache('things', 'db', '10d', true, true);
foreach ([1, 2] as $round) {
    foreach (['a', 'b', 'ü😀', 'long' . str_repeat('x', 100)] as $key) {
        $cache->set($key, ['round' => $round, 'bytes' => str_repeat("\u{1F600}", 500)]);
    }
    $cache->close();
}
note('cache', [$cache->get('a')['round'], $cache->get('none')]);
$cache->remove('a');
$cache->remove('l', true);
$cache->close();
$cache->expunge();
$shared = $rcmail->get_cache_shared('shared');
note('shared cache', $shared ? true : false);
foreach ([1, 2] as $round) {
    $insert = $db->insert_or_update('cache_index', ['user_id' => $user->ID, 'mailbox' => 'INBOX.Grüße'], ['valid', 'expires', 'data'], [1, date('Y-m-d H:i:s', time() + 86400), str_repeat("round $round ", 100)]);
    note("index $round", $db->affected_rows($insert));
}

// Sessions.
$session = rcube_session::factory($rcmail->config);
note('session', [$session->write('abc', 'x|i:1;'), $session->write('def', str_repeat("y|s:1:\"😀\";", 50)), $session->update('abc', 'x|i:2;', 'x|i:1;'), strlen($session->read('def')), $session->destroy('def'), $session->read('none')]);
$session->gc(1440);

// Statements of its layer: transactions, lists, dates, quoting, errors.
note('quoting', [$db->quote("it's \\ \"q\" \0 😀"), $db->quote_identifier('a`b'), $db->array2list([1, "x'", 3]), $db->ilike('name', '%x%'), $db->escape("a'b")]);
note('tables', $db->list_tables());
$columns = $db->list_cols('contacts');
sort($columns); // its statement has no ORDER BY
note('columns', $columns);
note('variables', [$db->get_variable('no_such_variable', 'default'), (int) $db->get_variable('max_allowed_packet') > 0]);
$db->startTransaction();
$db->query('UPDATE `users` SET `language` = ? WHERE `user_id` = ?', 'fr_FR', 2);
$db->rollbackTransaction();
note('rolled back', $db->fetch_assoc($db->query('SELECT `language` FROM `users` WHERE `user_id` = ?', 2)));
note('limits', $db->fetch_array($db->limitquery('SELECT `email` FROM `contacts` WHERE `user_id` = ? ORDER BY `contact_id`', 2, 1, $user->ID)));
note('delete a user', $db->affected_rows($db->query('DELETE FROM `users` WHERE `user_id` = ?', 3)));
note('old schema', is_array($db->list_cols('system')));

echo json_encode($found, JSON_UNESCAPED_UNICODE | JSON_PARTIAL_OUTPUT_ON_ERROR);
